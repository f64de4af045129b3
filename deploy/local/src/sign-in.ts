import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { SignInFile } from "@halyard/contracts";
import { writePrivateFile } from "./private-file.ts";

/** Time during which the link signs in. It is in the scrollback of the terminal much longer. */
const validForMs = 5 * 60_000;

/** Writes the file of a new one-time code, and returns the code. Management exchanges it for the key. */
export function writeSignInFile(home: string, serverKey: string): string {
  const code = randomBytes(32).toString("base64url");
  const content: SignInFile = {
    code_sha256: createHash("sha256").update(code).digest("hex"),
    expires_at: new Date(Date.now() + validForMs).toISOString(),
    server_key: serverKey,
  };
  writePrivateFile(signInFileIn(home), content);
  return code;
}

export function signInFileIn(home: string): string {
  return join(home, "sign-in.json");
}
