import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { outcomes } from "@halyard/evaluation";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { blocksOf, commandsOf, sectionOf, tableOf } from "../../src/stories/page-blocks.ts";
import { type Demo, demoOf, type PageShell } from "../../src/stories/page-shell.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";
import type { Edge, System } from "../../src/system/system.ts";
import { must } from "../../src/system/tenancy.ts";
import { readMetric } from "../../src/traffic/awaited-writes.ts";

/** Runs the programs of docs/openfeature.md unchanged, and compares their output with the page. */
const page = readFileSync(new URL("../../../docs/openfeature.md", import.meta.url), "utf8");
const blocks = blocksOf(page);
const packages = fileURLToPath(new URL("../..", import.meta.url));

let demo: Demo;
const programs: ChildProcess[] = [];

const textOf = (kind: string) => blocks.find((block) => block.kind === kind)?.text ?? "";

/** Returns the output of a program that the page shows. */
function printsOf(kind: string): string {
  const next = blocks[blocks.findIndex((block) => block.kind === kind) + 1];
  return next?.kind === "text" ? next.text : "";
}

/** Returns the commands of a section that send requests, without those that install packages. */
function requestsOf(heading: string): string {
  const commands = commandsOf(sectionOf(page, heading)).map((block) => block.commands);
  return commands.find((text) => text.includes("curl ")) ?? "";
}

/** Starts a program with this test's URL and key, in its text or in its environment. Returns its output so far. */
function start(program: string): { printed: () => string; end: () => Promise<unknown> } {
  const ours = program
    .replace("http://127.0.0.1:8080", demo.base_url)
    .replace("hc_…", demo.client_key);
  const child = spawn(process.execPath, ["--input-type=module", "--eval", ours], {
    cwd: packages,
    env: { BASE_URL: demo.base_url, CLIENT_KEY: demo.client_key },
    stdio: ["ignore", "pipe", "pipe"],
  });
  programs.push(child);
  const exited = once(child, "exit");
  let printed = "";
  const collect = (bytes: Buffer) => {
    printed += bytes.toString();
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  return {
    printed: () => printed,
    end() {
      child.kill();
      return exited;
    },
  };
}

/** Counts the events that make a web provider request all flags, and the responses to those requests. */
async function refetchesOf([edge]: Edge[]): Promise<{ told: number; answered: number }> {
  const process = edge?.process ?? { metricsUrl: "" };
  return {
    told: await readMetric(process, "halyard_stream_events_sent_total", 'event="refetch"'),
    answered: await readMetric(process, "halyard_sdk_responses_total", 'endpoint="ofrep_flags"'),
  };
}

async function awaitOpenStreams({ edges }: System, count: number): Promise<void> {
  await eventually(async () => {
    const metrics = await fetch(`${edges[0]?.process.metricsUrl}/metrics`);
    return new RegExp(`^halyard_streams_open(?:\\{[^\\n]*\\})? ${count}$`, "m").test(
      await metrics.text(),
    );
  });
}

export function describeOpenFeature(given: () => PageSystem): void {
  let shell: PageShell;
  beforeAll(async () => {
    const tenant = await given().createTenant("OpenFeature");
    demo = demoOf(tenant, given().gatewayUrl);
    shell = given().openShell(tenant);
  });
  afterAll(() => {
    for (const program of programs) program.kill();
  });

  it.each(["first", "second"])(
    "docs/openfeature.md works when followed for the %s time",
    async () => {
      await shell.run(requestsOf("Create a flag"));

      const server = start(textOf("js server"));
      const lines = printsOf("js server").split("\n").length;
      await eventually(() => server.printed().split("\n").length >= lines);
      expect(server.printed()).toBe(printsOf("js server"));

      // The program for web pages, with the parts that it needs outside browsers.
      const [first = "", second = ""] = printsOf("js web").split("\n");
      const { edges } = given().system;
      const before = await refetchesOf(edges);
      const web = start(`${textOf("js node")}${textOf("js web")}`);
      await eventually(() => web.printed() !== "");
      expect(web.printed()).toBe(`${first}\n`);
      await awaitOpenStreams(given().system, 1);
      // A stream that is opened soon after a change begins with a refetch. The provider reports a change for each of two
      // refetches that overlap, so the next change waits until the first is answered.
      await eventually(async () => {
        const { told, answered } = await refetchesOf(edges);
        return answered - before.answered === 1 + told - before.told;
      });
      await shell.run(requestsOf("Web page"));
      await eventually(() => web.printed().includes(second));
      expect(web.printed()).toBe(printsOf("js web"));
      await web.end();
      await awaitOpenStreams(given().system, 0);
    },
  );

  it("docs/openfeature.md creates the flag for its programs in other languages, and shows that flag's values", async () => {
    expect(await followPage(shell, sectionOf(page, "Go, Python, Java and Rust"))).toBe(1);

    const evaluate = async (targetingKey: string) => {
      const { value, reason, variant } = await must(
        `${demo.base_url}/ofrep/v1/evaluate/flags/weekend-offer`,
        {
          method: "POST",
          key: demo.client_key,
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

  it("docs/openfeature.md lists every reason", () => {
    const listed = tableOf(page, "`reason`").map(([reason]) => reason?.replaceAll("`", ""));
    const reasons = Object.values(outcomes).map(({ reason }) =>
      reason === "prerequisite_failed" ? "DEFAULT" : reason.toUpperCase(),
    );
    expect([...new Set(listed)].sort()).toEqual([...new Set(reasons)].sort());
  });
}
