import type { Sql, Transaction } from "@halyard/postgres";
import type { Actor } from "../access/change-context.ts";
import type { FlagEnvironment } from "./flag.ts";

/** What the flags need to know of the project that they are in. */

/**
 * Returns the environments of a project, which stay as they are until the transaction ends: environments are added and
 * deleted under a lock that conflicts with this one. A project that was deleted meanwhile has none.
 */
export async function holdEnvironments(
  tx: Transaction,
  projectId: string,
): Promise<FlagEnvironment[]> {
  const held = await tx`select from projects where id = ${projectId} for key share`;
  if (held.count === 0) return [];
  return tx<FlagEnvironment[]>`
    select id, name from environments where project_id = ${projectId} order by id`;
}

export async function findEnvironment(
  sql: Sql | Transaction,
  place: { projectId: string; environmentId: string },
): Promise<FlagEnvironment | undefined> {
  const [environment] = await sql<FlagEnvironment[]>`
    select id, name from environments
    where id = ${place.environmentId} and project_id = ${place.projectId}`;
  return environment;
}

/**
 * Returns the user to whom a change is attributed. The lock makes an erasure of the e-mail address wait until the
 * change is committed. The address is empty if the user was removed with a deleted organization.
 */
export async function readActor(tx: Transaction, userId: string): Promise<Actor> {
  const [actor] = await tx<Actor[]>`
    select id, email from users where id = ${userId} for key share`;
  return actor ?? { id: userId, email: "" };
}
