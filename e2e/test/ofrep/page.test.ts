import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { outcomes } from "@halyard/evaluation";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/follow-page.ts";
import { type OpenFeatureSystem, startOpenFeatureSystem } from "../../src/openfeature.ts";
import { blocksOf, sectionOf, tableOf } from "../../src/page-blocks.ts";
import { demoOf, openPageShell } from "../../src/page-shell.ts";
import { must } from "../../src/tenancy.ts";

/** The programs of docs/openfeature.md, run as they stand, print what the page says. */
const page = readFileSync(new URL("../../../docs/openfeature.md", import.meta.url), "utf8");
const blocks = blocksOf(page);
const packages = fileURLToPath(new URL("../..", import.meta.url));

let running: OpenFeatureSystem;
const programs: ChildProcess[] = [];
beforeAll(async () => {
  running = await startOpenFeatureSystem({ edges: 1 });
});
afterAll(async () => {
  for (const program of programs) program.kill();
  await running?.close();
});

const textOf = (kind: string) => blocks.find((block) => block.kind === kind)?.text ?? "";

/** What the page says that the program prints. */
function printsOf(kind: string): string {
  const next = blocks[blocks.findIndex((block) => block.kind === kind) + 1];
  return next?.kind === "text" ? next.text : "";
}

/** Starts a program with our address and keys in it, and answers what it has printed so far. */
function start(program: string): () => string {
  const ours = program
    .replace("http://127.0.0.1:8080", running.gateway.url)
    .replace("hs_…", running.tenant.serverKey)
    .replace("hc_…", running.tenant.clientKey);
  const child = spawn(process.execPath, ["--input-type=module", "--eval", ours], {
    cwd: packages,
    stdio: ["ignore", "pipe", "pipe"],
  });
  programs.push(child);
  let printed = "";
  const collect = (bytes: Buffer) => {
    printed += bytes.toString();
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  return () => printed;
}

describe("given docs/openfeature.md", () => {
  it("has a program for servers that prints what it says", async () => {
    const printed = start(textOf("js server"));
    await eventually(
      () => printed().split("\n").length >= printsOf("js server").split("\n").length,
    );
    expect(printed()).toBe(printsOf("js server"));
  });

  it("has a program for web pages that hears of a change, with what it needs outside of browsers", async () => {
    const [first = "", second = ""] = printsOf("js web").split("\n");
    const printed = start(`${textOf("js node")}${textOf("js web")}`);
    await eventually(() => printed() !== "");
    expect(printed()).toBe(`${first}\n`);
    await eventually(async () => {
      const metrics = await fetch(`${running.system.edges[0]?.process.metricsUrl}/metrics`);
      return /^halyard_edge_streams(?:\{[^\n]*\})? 1$/m.test(await metrics.text());
    });
    await running.change("germany", { enabled: false });
    await eventually(() => printed().includes(second));
    expect(printed()).toBe(printsOf("js web"));
  });

  it("creates the flag for its programs in other languages, and shows that flag's values", async () => {
    const { tenant, gateway } = running;
    const shell = openPageShell(demoOf(tenant, gateway.url));
    const section = sectionOf(page, "Go, Python, Java and Rust");
    const commands = await followPage(shell, section);
    await followPage(shell, section);
    shell.close();
    expect(commands).toBe(1);

    const evaluate = async (targetingKey: string) => {
      const { value, reason, variant } = await must(
        `${gateway.url}/ofrep/v1/evaluate/flags/weekend-offer`,
        {
          method: "POST",
          key: tenant.clientKey,
          body: { context: { targetingKey, country: "DE" } },
        },
      );
      return `${value} ${reason} ${variant}\n`;
    };
    const evaluated = await eventually(() => Promise.all([evaluate("u-1"), evaluate("u-2")]));
    expect(printsOf("go")).toBe(evaluated.join(""));
    const valuesOf = (kind: string) =>
      printsOf(kind)
        .toLowerCase()
        .match(/true|false/g);
    for (const kind of ["python", "java", "rust"]) expect(valuesOf(kind)).toEqual(valuesOf("go"));
  });

  it("lists every reason that there is", () => {
    const listed = tableOf(page, "`reason`").map(([reason]) => reason?.replaceAll("`", ""));
    const reasons = Object.values(outcomes).map(({ reason }) => reason.toUpperCase());
    expect(listed.toSorted()).toEqual([...new Set(reasons)].sort());
  });
});
