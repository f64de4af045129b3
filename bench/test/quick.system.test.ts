import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "@jest/globals";
import { allBenchmarks } from "../src/all-benchmarks.ts";
import { peersAreInstalled } from "../src/peers/peers-package.ts";

const main = join(import.meta.dirname, "../src/main.ts");
const timeoutMs = 120_000;
/** Temporary directory of the benchmarks. The user of PostgreSQL needs access. */
const throwawayDir = mkdtempSync(join(tmpdir(), "halyard-quick-"));
chmodSync(throwawayDir, 0o755);
afterAll(() => rmSync(throwawayDir, { recursive: true }));

/** Runs benchmarks like `npm run bench`. */
async function runBench(...args: string[]): Promise<string> {
  const options = { timeout: timeoutMs, env: { ...process.env, TMPDIR: throwawayDir } };
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], options);
  return stdout;
}

/** Growth benchmarks share their code; these cover it in a fraction of the time. */
const curves = ["growth-edge-flags", "growth-flag-list", "growth-webhooks"];
const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";
/** `npm run chaos` runs the others too. */
const representatives = ["flags"];

/** Comparisons need packages that tests do not install. */
const runnable = allBenchmarks.filter(
  ({ name, withPeers }) =>
    (isThorough || representatives.includes(name)) &&
    (!withPeers || peersAreInstalled()) &&
    (!name.startsWith("growth-") || curves.includes(name)),
);

describe("given a benchmark", () => {
  it.each(runnable.map(({ name }) => name))(
    "%s runs and prints its figures",
    async (name) => {
      const output = await runBench("--quick", name);
      expect(output).toContain(`${name}: `);
      expect(output).toMatch(/^\| Figure +\| +Measured/m);
      expect(output).toContain("These figures mean nothing");
      expect(output).not.toMatch(/\bMet\b/);
    },
    timeoutMs,
  );

  it("leaves no temporary files", () => {
    const left = readdirSync(throwawayDir).filter((name) => name.startsWith("halyard-"));
    expect(left).toEqual([]);
  });
});

describe("given the command line", () => {
  it("help lists every benchmark", async () => {
    const output = await runBench("--help");
    for (const { summary } of allBenchmarks) expect(output).toContain(summary);
  });

  it.each([
    [["flaggs"], "--help lists them"],
    [["--quick", "--save", "flags"], "not worth saving"],
  ])("rejects %j with a hint", async (given, hint) => {
    await expect(runBench(...given)).rejects.toThrow(hint);
  });
});
