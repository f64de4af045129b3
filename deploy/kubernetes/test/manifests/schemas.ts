import { describe, expect, test } from "@jest/globals";
import { generateSecrets, overlays, type RenderedObject, render } from "../rendered-overlay.ts";
import { schemaProblems } from "../schema-problems.ts";

async function problemsOf(objects: readonly RenderedObject[]): Promise<string[]> {
  const all = objects.map(async (object) =>
    (await schemaProblems(object)).map((text) => `${object.kind} ${object.metadata.name}: ${text}`),
  );
  return (await Promise.all(all)).flat();
}

describe.each(overlays)("the %s overlay", (overlay) => {
  test("has objects of known kinds with valid and known fields", async () => {
    expect(render(overlay).length).toBeGreaterThan(40);
    expect(await problemsOf(render(overlay))).toEqual([]);
  });

  test("has valid Secrets", async () => {
    expect(await problemsOf(generateSecrets(overlay))).toEqual([]);
  });
});

test("the validation finds a wrong type, an unknown field and an unknown kind", async () => {
  const service = (spec: object, kind = "Service"): RenderedObject => ({
    apiVersion: "v1",
    kind,
    metadata: { name: "example" },
    spec,
  });
  const valid = { ports: [{ port: 80 }] };
  expect(await problemsOf([service(valid)])).toEqual([]);
  expect(await problemsOf([service({ ports: [{ port: "x" }] })])).toEqual([
    expect.stringContaining("/spec/ports/0/port"),
  ]);
  expect(await problemsOf([service({ ports: [{ port: 80, prot: "TCP" }] })])).toEqual([
    "Service example: unknown field .spec.ports.0.prot",
  ]);
  expect(await problemsOf([service(valid, "Servcie")])).toEqual([
    "Servcie example: unknown kind v1 Servcie",
  ]);
});
