import { createSocket } from "node:dgram";
import { once } from "node:events";

/**
 * Starts a name server (RFC 1035) with IPv4 addresses for a few names. It has no IPv6 addresses, and does not respond
 * to queries for names that hang.
 */
export async function startNameServer(names: Record<string, string[] | "hangs">): Promise<{
  address: string;
  /** The queries: each name with its record type, 1 for IPv4 (A) or 28 for IPv6 (AAAA). */
  questions: string[];
  /** Delays the response for a name until this time after the first query. */
  delay(name: string, byMs: number): void;
  /** Ignores all queries of a record type. */
  ignore(kind: number): void;
  close(): Promise<void>;
}> {
  const socket = createSocket("udp4");
  const questions: string[] = [];
  const delays = new Map<string, number>();
  const firstAskedAt = new Map<string, number>();
  const ignored = new Set<number>();
  const waiting = new Set<NodeJS.Timeout>();
  socket.on("message", (query, { port, address }) => {
    const { name, kind, end } = readQuestion(query);
    questions.push(`${name} ${kind}`);
    const known = names[name];
    if (known === "hangs" || ignored.has(kind)) return;
    const found = kind === 1 ? (known ?? []) : [];
    const head = Buffer.from(query.subarray(0, 12));
    // The flags of a recursive response. The last digit is 3 if the name does not exist.
    head.writeUInt16BE(known === undefined ? 0x8183 : 0x8180, 2);
    head.writeUInt16BE(found.length, 6);
    head.writeUInt32BE(0, 8);
    const answer = Buffer.concat([head, query.subarray(12, end), ...found.map(addressRecord)]);
    const askedAt = firstAskedAt.get(name) ?? performance.now();
    firstAskedAt.set(name, askedAt);
    const waitMs = Math.max(0, askedAt + (delays.get(name) ?? 0) - performance.now());
    waiting.add(setTimeout(() => socket.send(answer, port, address), waitMs));
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    ignore: (kind) => void ignored.add(kind),
    delay: (name, byMs) => void delays.set(name, byMs),
    async close() {
      for (const timer of waiting) clearTimeout(timer);
      socket.close();
      await once(socket, "close");
    },
  };
}

/** Parses a query. A name is a sequence of labels, each after its length. The record type follows. */
function readQuestion(query: Buffer): { name: string; kind: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join("."), kind: query.readUInt16BE(at + 1), end: at + 5 };
}

/** Returns an A record: a pointer to the name in the query, type 1, class 1, TTL 0, four bytes. */
function addressRecord(address: string): Buffer {
  const head = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
  return Buffer.concat([head, Buffer.from(address.split(".").map(Number))]);
}
