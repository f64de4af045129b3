import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Bench, Benchmark } from "../benchmark.ts";
import { peakResidentBytes, settledBytes } from "../processes/process-usage.ts";
import { below } from "../reporting.ts";
import { startBackends } from "../system/backends.ts";
import { callApi } from "../system/call-api.ts";
import { startEdge, startManagement } from "../system/services.ts";
import { create, createTenant, type Tenant } from "../system/tenant.ts";
import { nowMs, until } from "../time.ts";
import { measureOtherTenant } from "./shared-audience.ts";

export const audiencesBenchmark: Benchmark = {
  name: "audiences",
  pinned: false,
  summary:
    "upload of a list of a million users, and single changes of it, until two edges have them",
  method:
    "A CSV file with 1,000,000 ids is uploaded to management with `PUT /api/v1/audiences/beta/list`. One flag has a rule with the audience. `visible` is the time until both edges answer true for the last id of the file. Then single ids are added in place of others, one after the other, with `PATCH …/list`; a time ends when both edges answer true for the id. Memory is resident memory: of management the peak during the upload above the memory before, of an edge the settled memory after the upload above that before. At the end, another audience, which 500 flags in 5 environments use, changes once a second, while a client of another tenant polls 100 flags at the same edge every 20 ms. A poll counts from the time at which it was due.",
  run,
};

const entries = 1_000_000;
const quickEntries = 2_000;
const additions = 100;
const quickAdditions = 3;
const mebibyte = 1024 * 1024;
const audience = "beta";
const flag = "new-checkout";

async function run(bench: Bench): Promise<void> {
  const backends = await startBackends(bench);
  const management = await startManagement(bench, backends);
  const tenant = await createTenant(management.url, 0);
  const edges = await Promise.all([1, 2].map(() => startEdge(bench, backends)));
  const path = `${management.url}/api/v1/audiences`;
  const token = tenant.serverKey;
  await create(management.url, { path: "audiences", token, body: { key: audience, name: "Beta" } });
  const rules = [{ conditions: [{ audience }] }];
  const body = { key: flag, name: "Checkout", enabled: true, targeting_rules: rules };
  await create(management.url, { path: "flags", token, body });
  const urls = edges.map(({ url }) => url);
  const count = bench.quick ? quickEntries : entries;
  const idOf = (index: number) => `user-${index}`;
  const before = await Promise.all(
    [management, ...edges].map(({ pid }) => settledBytes(bench, pid)),
  );

  bench.say(`uploads ${count} ids`);
  const startedMs = nowMs();
  await upload(
    `${path}/${audience}/list`,
    token,
    Array.from({ length: count }, (_, index) => idOf(index)),
  );
  const answeredMs = nowMs();
  await untilVisible(urls, tenant, idOf(count - 1));
  const visibleMs = nowMs();
  const peak = peakResidentBytes(management.pid);
  const after = await Promise.all(edges.map(({ pid }) => settledBytes(bench, pid)));

  const addedMs: number[] = [];
  for (let number = 0; number < (bench.quick ? quickAdditions : additions); number += 1) {
    const id = `added-${number}`;
    const sentMs = nowMs();
    // A list has at most a million entries.
    const body = { add: [id], remove: [idOf(number)] };
    await callApi(`${path}/${audience}/list`, { method: "PATCH", token, body });
    await untilVisible(urls, tenant, id);
    addedMs.push(nowMs() - sentMs);
  }

  bench.figure("upload until the response", "ms", answeredMs - startedMs);
  bench.figure("upload until visible on two edges", "ms", visibleMs - startedMs, {
    goal: below(10_000),
  });
  bench.latencies("one added id until visible on two edges: ", addedMs, {
    goals: { p99: below(1_000) },
  });
  const [managementBefore = Number.NaN, ...edgesBefore] = before;
  bench.figure(
    "management: peak memory above the start",
    "MiB",
    (peak - managementBefore) / mebibyte,
    {
      goal: below(64),
    },
  );
  const perEdge = after.map((bytes, index) => bytes - (edgesBefore[index] ?? Number.NaN));
  bench.figure("edge: memory of the list", "MB", Math.max(...perEdge) / 1e6, {
    goal: below(9),
  });
  const [edge] = edges;
  if (edge !== undefined) await measureOtherTenant(bench, { management, edge });
}

/** Sends the file in parts, so that the client does not hold it whole. */
async function upload(url: string, token: string, ids: Iterable<string>): Promise<void> {
  const sending = request(url, {
    method: "PUT",
    headers: { authorization: `Bearer ${token}`, "content-type": "text/csv" },
  });
  const answered = once(sending, "response");
  await pipeline(Readable.from(partsOf(ids)), sending);
  const [response] = (await answered) as [IncomingMessage];
  const text = (await response.toArray()).join("");
  if (response.statusCode !== 200) throw new Error(`upload: ${response.statusCode} ${text}`);
}

const linesOfPart = 10_000;

function* partsOf(ids: Iterable<string>): Generator<string> {
  let lines: string[] = [];
  for (const id of ids) {
    if (lines.push(`${id}\n`) < linesOfPart) continue;
    yield lines.join("");
    lines = [];
  }
  yield lines.join("");
}

async function untilVisible(urls: readonly string[], { clientKey }: Tenant, id: string) {
  const isOn = async (url: string): Promise<boolean> => {
    const query = `key=${flag}&user_id=${encodeURIComponent(id)}`;
    const response = await fetch(`${url}/api/v1/sdk/evaluate?${query}`, {
      headers: { authorization: `Bearer ${clientKey}` },
    });
    return response.ok && (await response.json()).value === true;
  };
  await Promise.all(urls.map((url) => until(`${url} has ${id}`, () => isOn(url))));
}
