import { eventually } from "@halyard/testing";
import { afterEach, expect, it } from "@jest/globals";
import { createFakeEdge } from "../../server-sdk/test/support/fake-edge.ts";
import { serveEdge } from "../../server-sdk/test/support/serve-edge.ts";
import { serverKey } from "../../server-sdk/test/support/setup.ts";
import { exampleOf, run } from "./example.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

it("the README's example prints what the page shows, and ends", async () => {
  const edge = createFakeEdge();
  const inGermany = { attribute: "country", operator: "equals", value: "DE" } as const;
  edge.change("germany", { targeting_rules: [{ conditions: [inGermany] }] });
  const served = await serveEdge(edge);
  ends.push(served.stop);

  const { program, output } = exampleOf(new URL("../README.md", import.meta.url));
  const running = run(program, { HALYARD_URL: served.url, HALYARD_KEY: serverKey });
  ends.push(running.kill);
  const [firstLine] = output.split("\n");
  await eventually(running.printed, { until: (printed) => printed !== "" });
  expect(running.printed()).toBe(`${firstLine}\n`);
  edge.change("germany", { enabled: false });
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
