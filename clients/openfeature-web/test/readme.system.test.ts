import { eventually } from "@halyard/testing";
import { afterEach, expect, it } from "@jest/globals";
import { exampleOf, run } from "../../openfeature-server/test/example.ts";
import { clientKey, startFakeEdge } from "./fake-edge.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

it("the README's example prints what the page shows, and ends", async () => {
  const inGermany = { attribute: "country", operator: "equals", value: "DE" } as const;
  const edge = await startFakeEdge({ germany: { targeting_rules: [{ conditions: [inGermany] }] } });
  ends.push(edge.close);

  const { program, output } = exampleOf(new URL("../README.md", import.meta.url));
  const ours = program.replace("https://flags.example.com", edge.url).replace("hc_…", clientKey);
  const running = run(ours);
  ends.push(running.kill);
  const lines = output.trimEnd().split("\n");
  await eventually(running.printed, {
    until: (printed) => printed.split("\n").length >= lines.length,
  });
  expect(running.printed()).toBe(`${lines.slice(0, -1).join("\n")}\n`);
  edge.change({ germany: { targeting_rules: [] } });
  expect(await running.exited).toBe(0);
  expect(running.printed()).toBe(output);
});

it("the README's example of evaluation events prints what the page shows, and ends", async () => {
  const readme = new URL("../README.md", import.meta.url);
  const { program, output } = exampleOf(readme, "## Evaluation events");
  const running = run(program);
  ends.push(running.kill);
  expect(await running.exited).toBe(0);
  expect(running.printed()).toBe(output);
});
