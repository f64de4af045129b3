import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const forms = readdirSync(join(root, ".github/ISSUE_TEMPLATE")).filter(
  (file) => file !== "config.yml",
);

const workflows = readdirSync(join(root, ".github/workflows"));

function readYaml(path: string) {
  return parse(readFileSync(join(root, ".github", path), "utf8"));
}

describe("given the files for GitHub", () => {
  it("the workflow runs the same check as every other machine", () => {
    const steps: { run?: string }[] = readYaml("workflows/check.yml").jobs.check.steps;
    const commands = steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
    expect(commands).toContain(".ci/run");
    accessSync(join(root, ".ci/run"), constants.X_OK);
  });

  it("the release workflow checks the tag before it publishes anything", () => {
    const { check, ...others } = readYaml("workflows/release.yml").jobs;
    expect(check.steps).toContainEqual({ run: ".ci/run" });
    expect(Object.values(others)).toEqual(
      Object.keys(others).map(() => expect.objectContaining({ needs: "check" })),
    );
  });

  it.each(workflows)("%s pins every action by the hash of a commit", (workflow) => {
    const text = readFileSync(join(root, ".github/workflows", workflow), "utf8");
    const actions = [...text.matchAll(/uses: (.+)$/gm)].map(([, action]) => action);
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(action).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it("Dependabot watches folders that exist", () => {
    const { version, updates } = readYaml("dependabot.yml");
    expect(version).toBe(2);
    for (const { directory } of updates) accessSync(join(root, directory), constants.R_OK);
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
