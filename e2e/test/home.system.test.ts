import { readFileSync } from "node:fs";
import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { filesWritten } from "../src/checks/left-behind.ts";
import { createMarks, findTraces, needlesFor, type Source } from "../src/checks/traces.ts";
import { followPage } from "../src/stories/follow-page.ts";
import { openPageShellOn, type PageShell } from "../src/stories/page-shell.ts";
import { type Launched, launch } from "../src/system/launched.ts";
import { must } from "../src/system/tenancy.ts";
import { markedRequests } from "../src/traffic/marked-requests.ts";
import { sendRaw } from "../src/traffic/raw-request.ts";

/** Tests a complete Halyard, started by `npm start` on a new home. */
const pageOf = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
const flagKey = "checkout";
const marks = createMarks();
const planted = createMarks().next();

let launched: Launched;
let shell: PageShell;
beforeAll(async () => {
  launched = await launch({ LOG_LEVEL: "trace" });
  shell = openPageShellOn(launched.home);
});
afterAll(async () => {
  // The applications of the tutorial still run if the test failed before its last step.
  await shell?.run('kill "$ANNA" "$BRUNO"').catch(() => undefined);
  shell?.close();
  await launched?.remove();
});

it("the printed commands, and then the README, work when followed twice", async () => {
  // The launcher prints these lines after it has written demo.json.
  await eventually(() => launched.output().includes("Ctrl-C"));
  const printed = launched.output().match(/^ {2}curl .*$/gm) ?? [];
  expect(printed).toHaveLength(2);
  for (const line of printed) await shell.run(line);

  const [, steps = ""] = pageOf("README.md").split("\n## Your first flag\n");
  expect(await followPage(shell, steps)).toBe(2);
});

it("docs/tutorial.md works when followed twice", async () => {
  expect(await followPage(shell, pageOf("docs/tutorial.md"))).toBeGreaterThan(10);
  expect(launched.output().match(/management ended by SIGKILL/g)).toHaveLength(2);
});

/** The privacy test for a complete home: it contains all data of PostgreSQL, NATS and the services, and their logs. */
describe("given requests with marked users, and the end of all processes", () => {
  let files: Source[];
  const complaints: string[] = [];

  beforeAll(async () => {
    const { base_url: url, client_key: client, server_key: server } = launched.demo;
    const conditions = [{ attribute: "email", operator: "equals", value: planted }];
    await must(`${url}/api/v1/flags`, {
      method: "POST",
      key: server,
      headers: { "x-request-id": planted },
      body: { key: flagKey, name: "Checkout", enabled: true, targeting_rules: [{ conditions }] },
    });
    await eventually(async () => {
      const { body } = await call(`${url}/api/v1/sdk/flags`, { key: client });
      return flagKey in body.flags;
    });
    for (const { what, asked, status } of markedRequests(marks, {
      client,
      server,
      flag: flagKey,
    })) {
      const answer = await sendRaw(url, asked);
      if (answer.status !== status) complaints.push(`${what}: ${answer.status} ${answer.text}`);
    }
    expect(await launched.stop()).toBe(0);
    files = [...filesWritten([launched.home], 0)];
  });

  it("has returned the expected response to every request", () => {
    expect(complaints).toEqual([]);
  });

  it("has left no user data in any file or in the output", () => {
    const printed = { name: "the output", content: launched.output() };
    expect(marks.traces([...files, printed])).toEqual([]);
  });

  it.each(["postgres", "nats", "sdk-edge", "management.log"])(
    "would have found them in %s",
    (part) => {
      const found = findTraces(
        files.filter(({ name }) => name.includes(part)),
        needlesFor([planted]),
      );
      expect(found).not.toEqual([]);
    },
  );
});
