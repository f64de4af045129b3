import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { completeKey } from "@halyard/contracts";
import type { Bench, Benchmark } from "../benchmark.ts";
import { settledBytes } from "../processes/process-usage.ts";
import { throwawayDirectory } from "../system/backends.ts";
import { awaitReady, launchEdge, type Service } from "../system/services.ts";
import {
  type SnapshotContent,
  type SnapshotFlag,
  snapshotContent,
} from "../system/snapshot-content.ts";
import { startSnapshot, writeSnapshot } from "../system/snapshot-edge.ts";
import { until } from "../time.ts";

export const edgeRulesBenchmark: Benchmark = {
  name: "edge-rules",
  pinned: true,
  summary: "memory of an edge by the size and kind of rules",
  method:
    "An edge starts with rules of one kind, evaluates all flags once, and collects garbage. Its resident memory, less that of an edge with the same flags without rules, is divided by the size of the rules. Then the snapshot is written again under a new epoch, with changes to all flags. A second edge, which starts from the cache file and reads the new snapshot in full, has to manage with a heap of 2.5 times the memory of the first one.",
  run,
};

const mebibyte = 1024 * 1024;
const [rulesBytes, quickRulesBytes] = [64 * mebibyte, mebibyte / 4];
const environments = 10;
type Rules = SnapshotFlag["targeting_rules"];

/** The rules of one flag, by kind: about 48 KB each. */
const kinds: Readonly<Record<string, (flag: number) => Rules>> = {
  "lists of 1,000 ids": (flag) =>
    numbers(4).map((rule) => ({
      conditions: [
        {
          attribute: "account",
          operator: "in",
          value: numbers(1_000).map((item) => `u-${flag}-${rule}-${item}`.padEnd(9, "0")),
        },
      ],
    })),
  "short conditions": (flag) =>
    numbers(90).map((rule) => ({
      conditions: numbers(8).map((condition) => ({
        attribute: `attribute${condition}`,
        operator: "equals",
        value: `v-${flag}-${rule}-${condition}`,
      })),
    })),
  "versions and numbers": (flag) =>
    numbers(90).map((rule) => ({
      conditions: numbers(8).map((condition) => ({
        attribute: `attribute${condition}`,
        operator: condition % 2 === 0 ? "semver_gte" : "lt",
        value: condition % 2 === 0 ? `${flag}.${rule}.${condition}` : flag + rule,
      })),
    })),
  "long texts": (flag) =>
    numbers(5).map((rule) => ({
      conditions: [
        { attribute: "text", operator: "contains", value: `${flag}-${rule}`.padEnd(9_900, "x") },
      ],
    })),
};

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number);

async function run(bench: Bench): Promise<void> {
  for (const [kind, rulesOf] of Object.entries(kinds)) {
    const flagBytes = JSON.stringify(rulesOf(0)).length;
    const flags = Math.ceil((bench.quick ? quickRulesBytes : rulesBytes) / flagBytes);
    const total = flags * flagBytes;
    bench.say(`${flags} flags with ${kind}, ${Math.round(total / mebibyte)} MiB`);
    const without = await measure(
      bench,
      contentOf(flags, () => []),
    );
    const withRules = await measure(bench, contentOf(flags, rulesOf));
    bench.figure(`${kind}: memory for each byte of rules`, "bytes", (withRules - without) / total);
  }
}

function contentOf(flags: number, rulesOf: (flag: number) => Rules): SnapshotContent {
  const flagsPerEnvironment = Math.ceil(flags / environments);
  let flag = 0;
  return snapshotContent({
    environments,
    flagsPerEnvironment,
    flagState: (number) => ({
      key: `flag-${number}`,
      enabled: true,
      rollout_percentage: 100,
      targeting_rules: rulesOf(flag++),
    }),
  });
}

/** Returns the content with the next version of each flag, under another epoch. */
function nextVersion({ records, scopes }: SnapshotContent): SnapshotContent {
  return {
    scopes,
    records: records.map(({ key, value }) => {
      const entry = JSON.parse(value);
      if (key === completeKey)
        return { key, value: JSON.stringify({ ...entry, epoch: randomUUID() }) };
      if (entry.kind !== "flag") return { key, value };
      return { key, value: JSON.stringify({ ...entry, version: 2, rollout_percentage: 99 }) };
    }),
  };
}

/** Returns the resident memory of an edge. The edge also has to manage a full read with a bounded heap. */
async function measure(bench: Bench, content: SnapshotContent): Promise<number> {
  const nats = await startSnapshot(bench, content);
  const cacheFile = join(throwawayDirectory(bench, "cache"), "snapshot");
  const first = await launchEdge(bench, { nats, cacheFile, nodeOptions: collecting });
  await awaitReady(first);
  await evaluateAll(first, content);
  process.kill(first.pid, "SIGUSR2");
  const resident = await settledBytes(bench, first.pid);
  await first.stop();

  await writeSnapshot(nats.url, nextVersion(content));
  const heapMebibytes = Math.ceil((resident / mebibyte) * heapShare);
  const nodeOptions = `--max-old-space-size=${heapMebibytes}`;
  const second = await launchEdge(bench, { nats, cacheFile, nodeOptions });
  await awaitReady(second);
  await evaluateAll(second, content);
  await until("the edge has read the snapshot", () => isCurrent(second));
  await second.stop();
  return resident;
}

/** Collects garbage on SIGUSR2: Node.js would keep most of it as long as the machine has memory. */
const collecting = `--expose-gc --import=data:text/javascript,process.on('SIGUSR2',()=>gc())`;

/** The heap of the second edge, as a multiple of the resident memory of the first one. */
const heapShare = 2.5;

async function isCurrent({ metricsUrl }: Service): Promise<boolean> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  return /^halyard_snapshot_source\{[^}]*source="nats"[^}]*\} 1$/m.test(text);
}

async function evaluateAll({ url }: Service, { scopes }: SnapshotContent): Promise<void> {
  for (const { key } of scopes) {
    // The account is looked up in every list, which the edge hashes at the first look-up.
    const user = { "x-user-id": "ada", "x-user-account": "none" };
    const headers = { authorization: `Bearer ${key}`, ...user };
    const response = await fetch(`${url}/api/v1/sdk/flags`, { headers });
    if (!response.ok) throw new Error(`the edge answered ${response.status}`);
    await response.arrayBuffer();
  }
}
