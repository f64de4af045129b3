import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readIfPresent, writePrivateFile } from "./private-file.ts";
import { StartError } from "./start-error.ts";

/** What must be the same after a restart, kept in `credentials.json` for its owner's eyes only. */
export type Credentials = {
  operator_token: string;
  owner_password: string;
  runtime_password: string;
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

const SECRET_BYTES = 32;

/** Reads the credentials of this home, or makes them on the first start. */
export function loadCredentials(home: string): Credentials {
  const text = readIfPresent(fileIn(home));
  if (text !== undefined) return parse(text, fileIn(home));
  const secret = () => randomBytes(SECRET_BYTES).toString("base64url");
  const made = { operator_token: secret(), owner_password: secret(), runtime_password: secret() };
  saveCredentials(home, made);
  return made;
}

export function saveCredentials(home: string, credentials: Credentials): void {
  writePrivateFile(fileIn(home), `${JSON.stringify(credentials, null, 2)}\n`);
}

function fileIn(home: string): string {
  return join(home, "credentials.json");
}

function parse(text: string, file: string): Credentials {
  try {
    return JSON.parse(text) as Credentials;
  } catch (cause) {
    throw new StartError(
      `${file} is damaged. Restore it, or delete it: the next start makes new keys for the same data.`,
      { cause },
    );
  }
}
