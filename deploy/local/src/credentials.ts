import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type NatsUser, natsUsers } from "@halyard/contracts";
import { readIfPresent, StartError } from "@halyard/local-backends";
import { writePrivateFile } from "./private-file.ts";

const secretNames = [
  "operator_token",
  // The roles of management, which was the first service with a schema.
  "owner_password",
  "runtime_password",
  "scheduler_owner_password",
  "scheduler_runtime_password",
  // Seeds of these services' key pairs, which sign their messages.
  "scheduler_signing_seed",
  "webhook_dispatcher_signing_seed",
  "stream_token_secret",
  // Seed of the key pair of management, which signs the snapshot entries of API keys and its messages.
  "signing_seed",
  // Key with which the webhook dispatcher encrypts the secrets of webhooks.
  "webhook_secret_key",
  "webhooks_owner_password",
  "webhooks_runtime_password",
  "usage_owner_password",
  "usage_runtime_password",
  "doctor_password",
] as const;

/** Secrets that stay the same across restarts. `credentials.json` stores them, readable by its owner only. */
export type Credentials = Readonly<Record<(typeof secretNames)[number], string>> & {
  /** By NATS user. */
  nats_passwords: Readonly<Record<NatsUser, string>>;
  demo?: DemoCredentials;
};

export type DemoCredentials = {
  organization_id: string;
  user_id: string;
  project_id: string;
  environment_id: string;
  client_key: string;
  server_key: string;
  /** A home of release 0.1 lacks it until the next start has created it. */
  reader_key: string;
};

/** Length of every secret. The key that encrypts the secrets of webhooks must have exactly this length. */
const SECRET_BYTES = 32;

/**
 * Reads the credentials of this home, or creates them at the first start. Secrets that an older home lacks are added.
 */
export function loadCredentials(home: string): Credentials {
  const text = readIfPresent(fileIn(home));
  const kept: Partial<Credentials> = text === undefined ? {} : parse(text, fileIn(home));
  const credentials = {
    ...withSecrets(secretNames, kept),
    nats_passwords: withSecrets(natsUsers, kept.nats_passwords),
  } as Credentials;
  if (!isDeepStrictEqual(credentials, kept)) saveCredentials(home, credentials);
  return credentials;
}

/** Returns the existing secrets, and a new one for each missing name. */
function withSecrets<Kept extends object>(names: readonly string[], kept?: Kept) {
  const newSecret = () => randomBytes(SECRET_BYTES).toString("base64url");
  return { ...Object.fromEntries(names.map((name) => [name, newSecret()])), ...kept };
}

export function saveCredentials(home: string, credentials: Credentials): void {
  writePrivateFile(fileIn(home), credentials);
}

function fileIn(home: string): string {
  return join(home, "credentials.json");
}

function parse(text: string, file: string): Credentials {
  try {
    return JSON.parse(text) as Credentials;
  } catch (cause) {
    throw new StartError(
      `${file} is not valid JSON. Restore it from a backup, or delete it. After a deletion, the next start ` +
        "creates new credentials for the existing data; the secrets of all webhooks must then be set again.",
      { cause },
    );
  }
}
