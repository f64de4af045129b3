import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { recordExchanges } from "../src/checks/exchanges/record.ts";

const folder = fileURLToPath(new URL("../fixtures/exchanges/", import.meta.url));
const names = [
  "management",
  "sdk",
  "streams",
  "received",
  "stored",
  "refusals",
  "limits",
  "malformed",
];

describe("given the recorded exchanges of a complete system", () => {
  let recorded: Map<string, string>;

  beforeAll(async () => {
    recorded = await recordExchanges();
    if (process.env.RECORD_EXCHANGES !== "true") return;
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of recorded) writeFileSync(`${folder}${name}.txt`, text);
    // Half a minute on an idle machine, and several times as long beside other systems.
  }, 600_000);

  it.each(names)("responds as recorded: %s", (name) => {
    expect(recorded.get(name)).toBe(readFileSync(`${folder}${name}.txt`, "utf8"));
  });
});
