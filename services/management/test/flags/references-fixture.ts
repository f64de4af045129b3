import { flagsOf } from "../flag-fixture.ts";
import type { Management, seedProject } from "../management-fixture.ts";

type Project = Awaited<ReturnType<typeof seedProject>>;
type Answer = { status: number; body: { error: { code: string; message: string } } };

/** Creates and changes flags that require each other. */
export function referringFlagsOf(management: Management, project: Project) {
  const flags = flagsOf(management, project);
  const key = project.serverKey;

  const pathOf = ({ id }: { id: string }) => `/api/v1/flags/${id}`;
  const stateOf = (flag: { id: string }, environmentId = project.environmentId) =>
    `${pathOf(flag)}/environments/${environmentId}`;

  const require = (flag: { id: string }, ...required: { key: string }[]) =>
    flags.patch(pathOf(flag), { requires: required.map((each) => ({ flag: each.key, is: "on" })) });

  /** Creates flags. Each one requires the next. */
  async function createChain(count: number): Promise<{ id: string; key: string }[]> {
    const chain: { id: string; key: string }[] = [];
    for (let index = 0; index < count; index += 1) {
      const [next] = chain;
      const requires = next === undefined ? [] : [{ flag: next.key, is: "on" }];
      chain.unshift(await flags.createFlag({ requires }));
    }
    return chain;
  }

  const remove = (flag: { id: string }) => management.call(pathOf(flag), { method: "DELETE", key });
  const rollBack = (flag: { id: string }) =>
    management.call(`${stateOf(flag)}/rollback`, { method: "POST", key });

  return { ...flags, pathOf, stateOf, require, createChain, remove, rollBack };
}

/** Returns the code and message of a problem. */
export const problemOf = ({ status, body }: Answer): string =>
  `${status} ${body.error?.code}: ${body.error?.message}`;
