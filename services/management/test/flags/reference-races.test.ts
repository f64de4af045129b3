import type { Transaction } from "@halyard/postgres";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { findCircle } from "../../src/flags/requirement-graph.ts";
import { audiencesOf } from "../audiences/audience-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";
import { referringFlagsOf } from "./references-fixture.ts";

/**
 * Tests that concurrent changes leave no reference to nothing and no circle. A lock on the sum of the organization's
 * configuration stops the first change after its checks and before its commit. Without the lock of references, the
 * second change would then pass its checks too.
 */

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const { createFlag, patch, pathOf, stateOf, require, remove, rollBack } = referringFlagsOf(
  management,
  project,
);

const audiences = audiencesOf(management, project);

type Flag = { id: string; key: string };
type Request = () => Promise<{ status: number }>;

/** With rules, the creation and the deletion of a flag or an audience change the sum. */
const sized = { targeting_rules: [{ conditions: [] }] };
const sizedAudience = { match: [[{ attribute: "plan", operator: "equals", value: "beta" }]] };
const colors = {
  value_type: "string",
  variations: [
    { key: "blue", value: "#00f" },
    { key: "red", value: "#f00" },
  ],
  off_variation: "blue",
};

const lockSum = (tx: Transaction) =>
  tx`select from configuration_sizes where organization_id = ${project.organizationId} for update`;

async function waitForBlocked(count: number): Promise<void> {
  await eventually(async () => {
    const [blocked] = await management.sql<[{ count: number }]>`
      select count(*)::integer as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    return blocked.count === count;
  });
}

/** Sends the second request while the first one waits before its commit. Returns the statuses of the responses. */
async function interleave(first: Request, second: Request): Promise<number[]> {
  const sent = await management.sql.begin(async (tx) => {
    await lockSum(tx);
    const one = first();
    await waitForBlocked(1);
    const other = second();
    await waitForBlocked(2);
    return [one, other];
  });
  return (await Promise.all(sent)).map(({ status }) => status);
}

const createPair = async (): Promise<[Flag, Flag]> => [
  await createFlag(sized),
  await createFlag(sized),
];

describe("concurrent changes", () => {
  it("do not make a circle", async () => {
    const [one, other] = await createPair();
    const statuses = await interleave(
      () => require(one, other),
      () => require(other, one),
    );
    expect(statuses).toEqual([200, 400]);
  });

  it("do not delete a flag that is being required", async () => {
    const [flag, payments] = await createPair();
    const statuses = await interleave(
      () => require(flag, payments),
      () => remove(payments),
    );
    expect(statuses).toEqual([200, 409]);
  });

  it("do not require a flag that is being deleted", async () => {
    const [flag, payments] = await createPair();
    const statuses = await interleave(
      () => remove(payments),
      () => require(flag, payments),
    );
    expect(statuses).toEqual([204, 400]);
  });

  it("do not create a flag that requires one that is being deleted", async () => {
    const [, payments] = await createPair();
    const requires = [{ flag: payments.key, is: "on" }];
    const body = { key: "requires-a-deleted-flag", name: "A flag", requires };
    const statuses = await interleave(
      () => remove(payments),
      () => management.call("/api/v1/flags", { method: "POST", key: project.serverKey, body }),
    );
    expect(statuses).toEqual([204, 400]);
  });

  it("do not delete a flag that a rollback requires again", async () => {
    const [flag, payments] = await createPair();
    await require(flag, payments);
    await patch(pathOf(flag), { requires: [] });
    const statuses = await interleave(
      () => rollBack(flag),
      () => remove(payments),
    );
    expect(statuses).toEqual([200, 409]);
  });

  it("do not restore the requirement of a flag that is being deleted", async () => {
    const [flag, payments] = await createPair();
    await require(flag, payments);
    await patch(pathOf(flag), { requires: [] });
    const statuses = await interleave(
      () => remove(payments),
      () => rollBack(flag),
    );
    expect(statuses).toEqual([204, 409]);
  });

  it("do not delete an audience that is being used", async () => {
    const { key } = await audiences.create(sizedAudience);
    const flag = await createFlag();
    const statuses = await interleave(
      () => patch(pathOf(flag), { targeting_rules: [{ conditions: [{ audience: key }] }] }),
      () => audiences.call(audiences.path(key), { method: "DELETE" }),
    );
    expect(statuses).toEqual([200, 409]);
  });

  it("do not use an audience that is being deleted", async () => {
    const { key } = await audiences.create(sizedAudience);
    const flag = await createFlag();
    const statuses = await interleave(
      () => audiences.call(audiences.path(key), { method: "DELETE" }),
      () => patch(pathOf(flag), { targeting_rules: [{ conditions: [{ audience: key }] }] }),
    );
    expect(statuses).toEqual([204, 400]);
  });

  it("do not remove a variation that is being required", async () => {
    const [color, flag] = [await createFlag(colors), await createFlag()];
    await patch(stateOf(color, project.otherEnvironmentId), { off_variation: "blue" });
    const requires = [{ flag: color.key, is: ["red"] }];
    const statuses = await interleave(
      () => patch(pathOf(flag), { requires }),
      () => patch(pathOf(color), { variations: [{ key: "blue", value: "#00f" }] }),
    );
    expect(statuses).toEqual([200, 409]);
  });

  it("do not require a variation that is being removed", async () => {
    const [color, flag] = [await createFlag(colors), await createFlag()];
    await patch(stateOf(color, project.otherEnvironmentId), { off_variation: "blue" });
    const requires = [{ flag: color.key, is: ["red"] }];
    const statuses = await interleave(
      () => patch(pathOf(color), { variations: [{ key: "blue", value: "#00f" }] }),
      () => patch(pathOf(flag), { requires }),
    );
    expect(statuses).toEqual([200, 400]);
  });

  it("leave no circle and no reference to nothing, in any order", async () => {
    const flags: Flag[] = [];
    for (let index = 0; index < 6; index += 1) flags.push(await createFlag(sized));
    const at = (index: number) => flags[index % flags.length] as Flag;
    const requests = Array.from({ length: 90 }, (_, index) => {
      const turn = Math.floor(index / flags.length);
      if (index % 11 === 10) return rollBack(at(index + turn));
      if (index % 29 === 28) return remove(at(index));
      return require(at(index), at(index + 1 + (turn % 5)));
    });
    const statuses = new Set((await Promise.all(requests)).map(({ status }) => status));
    expect([...statuses].filter((status) => status >= 500)).toEqual([]);
    const dangling = await management.sql`
      select reference.key from flag_references as reference
      where reference.kind = 'flag' and reference.key not in (select key from flags)`;
    expect(dangling).toEqual([]);
    const edges = await management.sql<{ key: string; required: string }[]>`
      select flag.key, reference.key as required
      from flag_references as reference join flags as flag on flag.id = reference.flag_id`;
    const graph = new Map(
      [...Map.groupBy(edges, ({ key }) => key)].map(([key, to]) => [
        key,
        to.map(({ required }) => required),
      ]),
    );
    for (const { key } of flags) expect(findCircle(graph, key)).toBeUndefined();
  });
});
