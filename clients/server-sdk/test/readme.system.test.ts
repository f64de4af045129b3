import { afterEach, expect, it } from "@jest/globals";
import { exampleOf, run } from "../../openfeature-server/test/example.ts";
import { endAll, serverKey, setUp } from "./support/setup.ts";

afterEach(endAll);

it("the README's example of evaluation events prints what the page shows, and ends", async () => {
  const { served } = await setUp();
  const readme = new URL("../README.md", import.meta.url);
  const { program, output } = exampleOf(readme, "## Evaluation events");
  const running = run(program.replace("https://flags.example.com", served.url), {
    HALYARD_READER_KEY: serverKey,
  });
  expect(await running.exited).toBe(0);
  expect(running.printed()).toBe(output);
});
