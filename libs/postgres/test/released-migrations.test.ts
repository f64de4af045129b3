import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "@jest/globals";

/**
 * A database runs each migration once, so a released file never changes, and a correction is another migration.
 * `npm run release` records the SHA-256 of each file, from 0.2.0 on.
 */
const root = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const fileOf = (version: string) => `libs/contracts/released/${version}/migrations.json`;

it("are recorded for every release from 0.2.0 on", () => {
  const versions = [...read("CHANGELOG.md").matchAll(/^## \[(\d[^\]]*)\]/gm)].map(([, one]) => one);
  expect(versions).toContain("0.1.0");
  const recorded = globSync(fileOf("*"), { cwd: root }).sort();
  const expected = versions.filter((version) => version !== "0.1.0").map((one) => fileOf(`${one}`));
  expect(recorded).toEqual(expected.sort());
});

it("are unchanged since their release", () => {
  for (const list of globSync(fileOf("*"), { cwd: root })) {
    const recorded: Record<string, string> = JSON.parse(read(list));
    const services = Object.keys(recorded).map((path) => path.split("/")[1]);
    expect(new Set(services)).toEqual(
      new Set(["management", "scheduler", "usage-metering", "webhook-dispatcher"]),
    );
    const present = Object.keys(recorded).map((path) => [
      path,
      createHash("sha256").update(read(path)).digest("hex"),
    ]);
    expect(Object.fromEntries(present)).toEqual(recorded);
  }
});

/** The upgrade from 0.1 stops all processes that write, so these files may block them. */
const lastOfUpgrade: Readonly<Record<string, string>> = {
  management: "0038",
  scheduler: "0008",
  "usage-metering": "0005",
  "webhook-dispatcher": "0008",
};

it("index a table that has rows without blocking writes", () => {
  const blocking = globSync("services/*/migrations/*.sql", { cwd: root })
    .filter((path) => {
      const [, service = "", , file = ""] = path.split("/");
      return file > `${lastOfUpgrade[service]}~`;
    })
    .filter((path) => blocksWrites(read(path)));
  expect(blocking).toEqual([]);
});

it.each([
  ["create index a on others (text);", true],
  ["create unique index a on others (text);", true],
  ["create index concurrently a on others (text);", false],
  ["create table own (text text);\ncreate index a on own (text);", false],
])("find that %s blocks writes: %s", (sql, blocks) => expect(blocksWrites(sql)).toBe(blocks));

/** Returns whether a migration builds an index without `concurrently` on a table that it does not create. */
function blocksWrites(sql: string): boolean {
  const created = new Set([...sql.matchAll(/^create table (\w+)/gm)].map(([, table]) => table));
  return [...sql.matchAll(/^create (?:unique )?index (?!concurrently)\w+ on (\w+)/gm)].some(
    ([, table]) => !created.has(table),
  );
}
