import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type NatsUser, natsUsers } from "@halyard/contracts";
import { readIfPresent, StartError } from "@halyard/local-backends";
import { writePrivateFile } from "./private-file.ts";

const secretNames = [
  "operator_token",
  // Management's roles were the only ones once.
  "owner_password",
  "runtime_password",
  "scheduler_owner_password",
  "scheduler_runtime_password",
  "stream_token_secret",
  // Of the key pair that signs the entries of API keys.
  "signing_seed",
  // The webhook dispatcher encrypts the secrets of webhooks with it.
  "webhook_secret_key",
  "webhooks_owner_password",
  "webhooks_runtime_password",
  "usage_owner_password",
  "usage_runtime_password",
] as const;

/** What must be the same after a restart, kept in `credentials.json` for its owner's eyes only. */
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
};

/** So many, too, has the key with which the secrets of webhooks are encrypted. */
const SECRET_BYTES = 32;

/**
 * Reads the credentials of this home, or makes them on the first start. A home may be older than some of
 * the secrets; then those are made now.
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

/** Returns the secrets of this home with a new one for each name that is missing. */
function withSecrets<Kept extends object>(names: readonly string[], kept?: Kept) {
  const made = Object.fromEntries(names.map((name) => [name, newSecret()]));
  return { ...made, ...kept };
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
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
      `${file} is damaged. Restore it, or delete it: the next start makes new keys for the same data, ` +
        "and webhooks have to be given their secrets again.",
      { cause },
    );
  }
}
