import { setTimeout as delay } from "node:timers/promises";
import { call, eventually, type ServiceProcess, startServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type Management,
  openManagement,
  operatorToken,
  seedProject,
} from "../management-fixture.ts";
import { audiencesOf } from "./audience-fixture.ts";

/** Uploads lists of the largest number of entries to a process of its own, and measures its memory. */
const entryCount = 1_000_000;
const lines = (prefix: string, count = entryCount) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}\n`).join("");

const management: Management = await openManagement();
const project = await seedProject(management);
await management.stop();
let service: ServiceProcess;
let given: ReturnType<typeof audiencesOf>;
beforeAll(start);
afterAll(async () => {
  await service.kill();
  await Promise.all([management.backends.database.drop(), management.backends.nats.stop()]);
});

async function start(): Promise<void> {
  service = await startServiceProcess("management", {
    POSTGRES_URL: management.backends.database.runtimeUrls.management,
    NATS_URL: management.natsUrl,
    OPERATOR_TOKEN: operatorToken,
  });
  const { url } = service;
  given = audiencesOf(
    { ...management, url, call: (path, options) => call(url + path, options) },
    project,
  );
  await eventually(async () => (await given.call("/api/v1/audiences")).status === 200);
}

/**
 * Returns the memory in use in MB: objects, including garbage, and buffers. The resident size also has the parts of the
 * heap that V8 keeps for itself after any burst of work.
 */
async function usedMegabytes(): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const megabytesOf = (name: string) =>
    Number(new RegExp(`^${name}\\S* (\\S+)$`, "m").exec(text)?.[1]) / 1e6;
  return megabytesOf("nodejs_heap_size_used_bytes") + megabytesOf("nodejs_external_memory_bytes");
}

/** Measures the memory until a promise settles, and returns the highest value. */
async function peakDuring(work: Promise<unknown>): Promise<number> {
  let isRunning = true;
  const ended = work.finally(() => {
    isRunning = false;
  });
  let peak = 0;
  while (isRunning) {
    peak = Math.max(peak, await usedMegabytes());
    await delay(50);
  }
  await ended;
  return peak;
}

describe("given a list of a million entries", () => {
  it("uses at most 128 MB more for its upload, with garbage and messages, and changes one chunk for one entry", async () => {
    await given.create({ key: "large" });
    const body = lines("user");
    const before = await usedMegabytes();
    const uploading = given.upload("large", body);
    const peak = await peakDuring(uploading);
    expect(await uploading).toMatchObject({
      status: 200,
      body: { list: { attribute: "id", count: entryCount } },
    });
    expect(peak - before).toBeLessThan(128);
    const changed = await given.change("large", { remove: ["user-0"], add: ["someone"] });
    expect(changed).toMatchObject({ status: 200, body: { list: { count: entryCount } } });
    expect(await given.hasMember("large", "someone")).toBe(true);
    expect(await given.hasMember("large", "user-0")).toBe(false);
  }, 240_000);
});

describe("given a process that is killed during an upload", () => {
  it("keeps the list, and removes the entries of the upload later", async () => {
    await given.create({ key: "kept" });
    await given.upload("kept", "old\n");
    const { request } = given.openUpload("kept");
    request.on("error", () => undefined);
    await new Promise((resolve) => request.write(lines("new", 100_000), resolve));
    await service.kill();
    await start();
    expect((await given.read("kept")).list).toEqual({ attribute: "id", count: 1 });
    expect(await given.hasMember("kept", "old")).toBe(true);
    expect(await given.hasMember("kept", "new-1")).toBe(false);
    expect((await given.upload("kept", "newer\n")).status).toBe(200);
  }, 60_000);
});
