import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const forms = readdirSync(join(root, ".github/ISSUE_TEMPLATE")).filter(
  (file) => file !== "config.yml",
);

function readYaml(path: string) {
  return parse(readFileSync(join(root, ".github", path), "utf8"));
}

describe("given the files for GitHub", () => {
  it("the workflow runs the same check as every other machine", () => {
    const steps: { run?: string; uses?: string }[] =
      readYaml("workflows/check.yml").jobs.check.steps;
    const commands = steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
    expect(commands).toContain(".ci/run");
    accessSync(join(root, ".ci/run"), constants.X_OK);
    for (const { uses } of steps)
      if (uses !== undefined) expect(uses).toMatch(/@(v\d+|[0-9a-f]{40})$/);
  });

  it.each(forms)("the form %s has all parts that GitHub requires", (form) => {
    const { name, description, body } = readYaml(join("ISSUE_TEMPLATE", form));
    expect([name, description].every((text) => typeof text === "string" && text !== "")).toBe(true);
    const questions: { type: string; id: string; attributes: { label: string } }[] = body.filter(
      ({ type }: { type: string }) => type !== "markdown",
    );
    expect(questions.length).toBeGreaterThan(0);
    expect(new Set(questions.map(({ id }) => id)).size).toBe(questions.length);
    for (const { type, id, attributes } of questions) {
      expect(["textarea", "input", "dropdown", "checkboxes"]).toContain(type);
      expect(id).toMatch(/^[\w-]+$/);
      expect(attributes.label).not.toBe("");
    }
  });
});
