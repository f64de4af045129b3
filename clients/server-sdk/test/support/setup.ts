import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../../src/client.ts";
import { createClientOn } from "../../src/create-client.ts";
import type { ClientOptions } from "../../src/options.ts";
import { createFakeClock, type FakeClock } from "./fake-clock.ts";
import { createFakeEdge, type FakeEdge } from "./fake-edge.ts";
import { type ServedEdge, serveEdge } from "./serve-edge.ts";

export const serverKey = `hs_${"a".repeat(16)}_${"s".repeat(43)}`;

export type LogLine = { level: string; message: string; details: unknown };

export function recordingLogger(lines: LogLine[]) {
  const at = (level: string) => (message: string, details?: unknown) =>
    void lines.push({ level, message, details });
  return { info: at("info"), warn: at("warn"), error: at("error") };
}

export type Setup = {
  edge: FakeEdge;
  served: ServedEdge;
  clock: FakeClock;
  client: Client;
  /** All lines of the log. */
  lines: LogLine[];
  /** Warnings and errors of the log. */
  warnings(): string[];
};

const ends: (() => Promise<void>)[] = [];
/** Stops the edges and clients of a test, and removes its cache files. */
export async function endAll(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** Returns the path of a cache file in a new directory. */
export async function newCacheFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "halyard-sdk-"));
  ends.push(() => rm(directory, { recursive: true }));
  return join(directory, "flags.json");
}

/** Starts a fake edge with the flag `new-checkout` and a client of it, whose clock the test controls. */
export async function setUp(
  options: Partial<ClientOptions> = {},
  prepare: (edge: FakeEdge) => void = () => undefined,
): Promise<Setup> {
  const edge = createFakeEdge();
  edge.change("new-checkout", { enabled: true });
  prepare(edge);
  const served = await serveEdge(edge);
  ends.push(() => served.stop());
  const clock = createFakeClock();
  const lines: LogLine[] = [];
  const client = startClient(clock, {
    ...{ baseUrl: served.url, logger: recordingLogger(lines) },
    ...options,
  });
  const warnings = () =>
    lines.filter(({ level }) => level !== "info").map(({ message }) => message);
  return { edge, served, clock, client, lines, warnings };
}

/** Starts a client whose clock the test controls. `endAll` closes it. */
export function startClient(clock: FakeClock, options: Partial<ClientOptions>): Client {
  const { fetch } = globalThis;
  const platform = { fetch, clock, random: () => 0.5 };
  const client = createClientOn(platform, { baseUrl: "http://127.0.0.1:1", serverKey, ...options });
  ends.push(() => client.close());
  // The first attempt starts with a timer.
  clock.advance(0);
  return client;
}
