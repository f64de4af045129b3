import type { Transaction } from "@halyard/postgres";

/** What a new environment needs to know of the flags that get a state in it. */
export type ProjectFlag = {
  id: string;
  organizationId: string;
  projectId: string;
  key: string;
  version: number;
  createdAt: Date;
};

/**
 * Reads all flags of a project and keeps them from being changed or deleted until the transaction
 * ends, so that the outbox ids of their new states are drawn under each flag's lock, as always. They
 * are locked in one order, and a flag that was deleted while we waited for it is left out.
 */
export async function lockProjectFlags(
  tx: Transaction,
  project: { id: string; organizationId: string },
): Promise<ProjectFlag[]> {
  const flags = await tx<Omit<ProjectFlag, "organizationId">[]>`
    select id, project_id as "projectId", key, version, created_at as "createdAt"
    from flags
    where project_id = ${project.id}
    order by id
    for update`;
  return flags.map((flag) => ({ ...flag, organizationId: project.organizationId }));
}
