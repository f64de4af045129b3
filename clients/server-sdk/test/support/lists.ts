import { createHash } from "node:crypto";
import { type AudienceList, bytesOfHex, fingerprintBytes, SipHash } from "@halyard/evaluation";

/** Key of the fingerprints of all lists in tests. */
export const listKey = "000102030405060708090a0b0c0d0e0f";

type MadeList = { list: AudienceList; chunks: ReadonlyMap<string, Uint8Array> };

/** Makes a list of entries, as the service does. It has 2^`bits` chunks. */
export function listOf(entries: readonly string[], { bits = 0, attribute = "id" } = {}): MadeList {
  const hash = new SipHash(bytesOfHex(listKey));
  const fingerprints = BigUint64Array.from(entries, (entry) => {
    hash.hash(entry);
    return (BigInt(hash.high) << 32n) | BigInt(hash.low);
  }).sort();
  const sizes = new Array<number>(2 ** bits).fill(0);
  for (const each of fingerprints) (sizes[Number(each >> BigInt(64 - bits))] as number) += 1;
  const chunks = new Map<string, Uint8Array>();
  const names: string[] = [];
  let from = 0;
  for (const size of sizes) {
    const bytes = bytesOf(fingerprints.subarray(from, from + size));
    from += size;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    names.push(sha256);
    chunks.set(sha256, bytes);
  }
  const list = { attribute, count: entries.length, key: listKey, chunks: names };
  return { list, chunks };
}

function bytesOf(fingerprints: BigUint64Array): Uint8Array {
  const bytes = Buffer.alloc(fingerprints.length * fingerprintBytes);
  for (const [index, each] of fingerprints.entries())
    bytes.writeBigUInt64BE(each, index * fingerprintBytes);
  return bytes;
}
