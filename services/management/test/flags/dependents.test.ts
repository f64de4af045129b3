import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, seedProject } from "../management-fixture.ts";
import { referringFlagsOf } from "./references-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const flags = referringFlagsOf(management, project);
const { createFlag, patch, pathOf, stateOf, require } = flags;

const dependentsOf = async (flag: { id: string }, key = project.serverKey) =>
  management.call(`${pathOf(flag)}/dependents`, { key });

describe("the dependents of a flag", () => {
  it("are the flags that require it in any environment, the direct ones first", async () => {
    const payments = await createFlag({ key: "payments" });
    const checkout = await createFlag({ key: "checkout" });
    const cart = await createFlag({ key: "cart", enabled: true });
    const conditions = [{ flag: "checkout", is: ["on"] }];
    await require(checkout, payments);
    await patch(pathOf(cart), { targeting_rules: [{ conditions }] });
    await patch(stateOf(cart, project.otherEnvironmentId), {
      requires: [{ flag: "payments", is: "off" }],
    });
    const answer = await dependentsOf(payments);
    expect(answer).toMatchObject({ status: 200, body: { total: 3 } });
    const production = { environment_id: project.environmentId, environment_name: "production" };
    const staging = { environment_id: project.otherEnvironmentId, environment_name: "staging" };
    const dependents = [
      {
        ...{ flag_id: checkout.id, flag_key: "checkout", ...production, enabled: false },
        ...{ requires: ["checkout", "payments"], is: "on" },
      },
      {
        ...{ flag_id: cart.id, flag_key: "cart", ...staging, enabled: false },
        ...{ requires: ["cart", "payments"], is: "off" },
      },
      {
        ...{ flag_id: cart.id, flag_key: "cart", ...production, enabled: true },
        ...{ requires: ["cart", "checkout", "payments"], is: "on" },
      },
    ];
    const sorted = (list: object[]) =>
      list.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    expect(sorted(answer.body.dependents)).toEqual(sorted(dependents));
    expect(answer.body.dependents.at(-1)).toEqual(dependents.at(-1));
    expect((await dependentsOf(checkout)).body.dependents).toEqual([
      {
        ...{ flag_id: cart.id, flag_key: "cart", ...production, enabled: true },
        ...{ requires: ["cart", "checkout"], is: ["on"] },
      },
    ]);
    expect((await dependentsOf(cart)).body).toEqual({ dependents: [], total: 0 });
  });

  it("are those in its own environment for an `environment_only` key", async () => {
    const required = await createFlag();
    const [here, elsewhere] = [await createFlag(), await createFlag()];
    await require(here, required);
    await patch(stateOf(elsewhere, project.otherEnvironmentId), {
      requires: [{ flag: required.key, is: "on" }],
    });
    const keysFor = async (key: string) =>
      (await dependentsOf(required, key)).body.dependents
        .map(({ flag_key }: { flag_key: string }) => flag_key)
        .sort();
    expect(await keysFor(project.serverKey)).toEqual([here.key, elsewhere.key].sort());
    expect(await keysFor(project.environmentOnlyKey)).toEqual([here.key]);
  });

  it("of a flag of another project are not found", async () => {
    const flag = await createFlag();
    const other = await seedProject(management);
    expect((await dependentsOf(flag, other.serverKey)).status).toBe(404);
  });
});
