import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { promisify } from "node:util";

/**
 * Ed25519 signatures as text: `<signer>.<signature in base64url>`. The signer is the beginning of the SHA-256 of the
 * public key. Ed25519 is deterministic: the same bytes always get the same signature.
 */
type Signer = {
  /** Identifies the public key. */
  id: string;
  publicKey: KeyObject;
  sign(bytes: Uint8Array): Promise<string>;
};

/** Public keys by the id of their signer. */
export type PublicKeys = ReadonlyMap<string, KeyObject>;

const idLength = 16;
const shape = /^([0-9a-f]{16})\.([A-Za-z0-9_-]{86})$/;

const signOnThreadPool = promisify(sign);

export function createSigner(privateKey: KeyObject): Signer {
  const publicKey = createPublicKey(privateKey);
  const id = signerIdOf(publicKey);
  return {
    id,
    publicKey,
    async sign(bytes) {
      const signature = await signOnThreadPool(null, bytes, privateKey);
      return `${id}.${signature.toString("base64url")}`;
    },
  };
}

export function publicKeysById(publicKeys: readonly KeyObject[]): PublicKeys {
  return new Map(publicKeys.map((key) => [signerIdOf(key), key]));
}

/** Returns whether the text is a valid signature of the bytes by one of the public keys. */
export function hasSignature(
  bytes: () => Uint8Array,
  signature: string,
  publicKeys: PublicKeys,
): boolean {
  const [, signer = "", text = ""] = shape.exec(signature) ?? [];
  const publicKey = publicKeys.get(signer);
  if (publicKey === undefined) return false;
  return verify(null, bytes(), publicKey, Buffer.from(text, "base64url"));
}

/** Returns the id of the signer of a signature. */
export const signerIn = (signature: string): string => signature.slice(0, idLength);

function signerIdOf(publicKey: KeyObject): string {
  const der = publicKey.export({ format: "der", type: "spki" });
  return createHash("sha256").update(der).digest("hex").slice(0, idLength);
}
