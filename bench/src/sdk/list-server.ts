import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type AudienceList, bytesOfHex, fingerprintBytes, SipHash } from "@halyard/evaluation";
import type { Bench } from "../benchmark.ts";

const maxChunkBytes = 512 * 1024;

type MadeList = { list: AudienceList; chunks: ReadonlyMap<string, Uint8Array> };

/** Makes a list of `user-0`, `user-1` and so on, in as few chunks as possible. */
export function makeList(entries: number): MadeList {
  const key = "000102030405060708090a0b0c0d0e0f";
  const hash = new SipHash(bytesOfHex(key));
  const fingerprints = BigUint64Array.from({ length: entries }, (_, index) => {
    hash.hash(`user-${index}`);
    return (BigInt(hash.high) << 32n) | BigInt(hash.low);
  }).sort();
  for (let bits = 0; ; bits += 1) {
    const parts = divide(fingerprints, bits);
    if (parts.some(({ byteLength }) => byteLength > maxChunkBytes)) continue;
    const chunks = new Map(parts.map((bytes) => [sha256Of(bytes), bytes]));
    const list = { attribute: "id", count: entries, key, chunks: [...chunks.keys()] };
    return { list, chunks };
  }
}

function divide(fingerprints: BigUint64Array, bits: number): Buffer[] {
  const sizes = new Array<number>(2 ** bits).fill(0);
  for (const each of fingerprints) (sizes[Number(each >> BigInt(64 - bits))] as number) += 1;
  let from = 0;
  return sizes.map((size) => {
    const bytes = Buffer.alloc(size * fingerprintBytes);
    for (let at = 0; at < size; at += 1)
      bytes.writeBigUInt64BE(fingerprints[from + at] as bigint, at * fingerprintBytes);
    from += size;
    return bytes;
  });
}

const sha256Of = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Serves a rule set whose flag `listed` is for a list, and whose flag `compared` compares an attribute. */
export async function serveList(bench: Bench, { list, chunks }: MadeList): Promise<string> {
  const flagOf = (condition: object) => ({
    ...{ enabled: true, rollout_percentage: 100, version: 1 },
    targeting_rules: [{ conditions: [condition] }],
  });
  const rules = JSON.stringify({
    ...{ format: 2, environment_id: "0199a000-0000-7000-8000-000000000001" },
    flags: {
      listed: flagOf({ audience: "users" }),
      compared: flagOf({ attribute: "id", operator: "equals", value: "user-x" }),
    },
    audiences: { users: { match: [], list } },
    full: true,
  });
  const server = createServer(({ url = "" }, response) => {
    const chunk = chunks.get(url.slice(url.lastIndexOf("/") + 1));
    if (chunk !== undefined) response.end(chunk);
    else if (url.includes("/ruleset/stream")) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: ruleset\nid: "2.a"\ndata: ${rules}\n\n`);
      response.write('event: heartbeat\ndata: {"timestamp":1,"interval":3600}\n\n');
    } else {
      response.writeHead(404);
      response.end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  bench.afterwards(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
