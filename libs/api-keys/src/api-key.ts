import { createHash } from "node:crypto";
import type { KeyKind } from "@halyard/contracts";

/**
 * API keys: `hc_<id>_<secret>` for clients, which are public, `hr_<id>_<secret>` for applications on servers, which only
 * read, and `hs_<id>_<secret>` for servers, which also manage flags. The id is 16 characters of base32
 * (`a-z2-7`), by which a key is looked up. The secret is 32 random bytes in base64url, of which only the SHA-256 is
 * stored. A fast hash suffices, because random secrets cannot be guessed.
 */
type ParsedApiKey = { kind: KeyKind; id: string; secret: string };

export type NewApiKey = { id: string; key: string; secretSha256: string };

const prefixes: Record<KeyKind, string> = { client: "hc", reader: "hr", server: "hs" };
const kinds = Object.fromEntries(
  Object.entries(prefixes).map(([kind, prefix]) => [prefix, kind as KeyKind]),
);
const shape = /^(hc|hr|hs)_([a-z2-7]{16})_([A-Za-z0-9_-]{43})$/;
const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

const idBytes = 10;
const secretBytes = 32;

/** Returns the parts of a key; undefined if the text is not a valid key. */
export function parseApiKey(text: string): ParsedApiKey | undefined {
  const match = shape.exec(text);
  if (match === null) return undefined;
  const [, prefix = "", id = "", secret = ""] = match;
  return { kind: kinds[prefix] as KeyKind, id, secret };
}

/**
 * Checks the form of a key without reading every character, for a key that is looked up afterwards. An invalid id is
 * then not found, and an invalid secret does not match.
 */
export function hasShapeOf(kind: KeyKind, text: string): boolean {
  return (
    text.length === keyLength &&
    text.startsWith(prefixes[kind]) &&
    text[idStart - 1] === "_" &&
    text[secretStart - 1] === "_"
  );
}

export function idIn(text: string): string {
  return text.slice(idStart, secretStart - 1);
}

export function secretIn(text: string): string {
  return text.slice(secretStart);
}

const idStart = 3;
const secretStart = 20;
const keyLength = 63;

/** Creates a key. `randomBytes` must return the requested number of unpredictable bytes. */
export function makeApiKey(kind: KeyKind, randomBytes: (size: number) => Buffer): NewApiKey {
  const id = base32(randomBytes(idBytes));
  const secret = randomBytes(secretBytes).toString("base64url");
  return { id, key: `${prefixes[kind]}_${id}_${secret}`, secretSha256: sha256(secret) };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Encodes ten bytes as exactly sixteen characters of five bits. */
function base32(bytes: Buffer): string {
  let text = "";
  let held = 0;
  let heldBits = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    heldBits += 8;
    while (heldBits >= 5) {
      heldBits -= 5;
      text += alphabet[(held >> heldBits) & 31];
    }
    held &= (1 << heldBits) - 1;
  }
  return text;
}
