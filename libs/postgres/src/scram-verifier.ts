import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";

/** PostgreSQL's default of `scram_iterations`. */
const iterations = 4096;
const saltBytes = 16;
const keyBytes = 32;

/**
 * Returns the SCRAM verifier that PostgreSQL stores instead of a password (its manual, "pg_authid"; RFC 5803). A
 * statement that sets a password can appear in the server's log, so it must contain the verifier and not the password.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(saltBytes)): string {
  const salted = pbkdf2Sync(password, salt, iterations, keyBytes, "sha256");
  const keyOf = (name: string) => createHmac("sha256", salted).update(name).digest();
  const storedKey = createHash("sha256").update(keyOf("Client Key")).digest("base64");
  const serverKey = keyOf("Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}
