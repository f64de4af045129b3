import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "@jest/globals";
import { allBenchmarks } from "../src/all-benchmarks.ts";
import { peersAreInstalled } from "../src/peers/peers-package.ts";

const main = join(import.meta.dirname, "../src/main.ts");
const patienceMs = 120_000;

/** Where the benchmarks keep what they throw away; PostgreSQL's own user must get in. */
const throwawayDir = mkdtempSync(join(tmpdir(), "halyard-quick-"));
chmodSync(throwawayDir, 0o755);
afterAll(() => rmSync(throwawayDir, { recursive: true }));

/** As `npm run bench` starts them, but tiny. */
async function runBench(...args: string[]): Promise<string> {
  const options = { timeout: patienceMs, env: { ...process.env, TMPDIR: throwawayDir } };
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], options);
  return stdout;
}

/** The curves of growth share their steps, so that these cover them, in a fraction of the time. */
const curves = ["growth-edge-flags", "growth-flag-list", "growth-webhooks"];

const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

/** An edge alone, and a curve of a service with PostgreSQL. `npm run chaos` runs the others too. */
const representatives = ["flags", "growth-flag-list"];

/** What other libraries are compared with is installed by who measures; checks do without. */
const runnable = allBenchmarks.filter(
  ({ name, withPeers }) =>
    (isThorough || representatives.includes(name)) &&
    (!withPeers || peersAreInstalled()) &&
    (!name.startsWith("growth-") || curves.includes(name)),
);

/** What some of them show besides, and what else would say that something is wrong. */
const shownBesides: Readonly<Record<string, string>> = {
  schedules: "Index Scan using scheduled_changes_due on scheduled_changes",
  webhooks: "Index Scan using deliveries_due on deliveries",
};

describe("given a benchmark", () => {
  it.each(runnable.map(({ name }) => name))(
    "%s runs from end to end and prints its figures",
    async (name) => {
      const output = await runBench("--quick", name);
      expect(output).toContain(`${name}: `);
      expect(output).toMatch(/^\| What +\| +Measured/m);
      expect(output).toContain("These figures mean nothing");
      expect(output).not.toMatch(/\bMet\b/);
      expect(output).toContain(shownBesides[name] ?? "");
    },
    patienceMs,
  );

  it(
    "its profile names the folders of ours that answer",
    async () => {
      const output = await runBench("--quick", "--profile", "flags");
      expect(output).toContain("services/sdk-edge/src/http");
    },
    patienceMs,
  );

  it("nothing of it is left behind", () => {
    const left = readdirSync(throwawayDir).filter((name) => name.startsWith("halyard-"));
    expect(left).toEqual([]);
  });
});

describe("given the command line", () => {
  it("help lists every benchmark", async () => {
    const output = await runBench("--help");
    for (const { summary } of allBenchmarks) expect(output).toContain(summary);
  });

  it("an unknown name is refused with what to do", async () => {
    await expect(runBench("flaggs")).rejects.toThrow("--help lists them");
  });

  it("quick figures are not saved", async () => {
    await expect(runBench("--quick", "--save", "flags")).rejects.toThrow("not worth saving");
  });
});
