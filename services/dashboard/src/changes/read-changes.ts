import { unwrap } from "../api/client.ts";
import type { paths } from "../api/schema.d.ts";
import type { KeySession } from "../session/session.tsx";

const route = "/api/v1/projects/{projectId}/changes";
type Query = NonNullable<paths[typeof route]["get"]["parameters"]["query"]>;

/** Reads a page of the audit log of the project, the newest changes first. */
export function readChanges(
  { api, me }: Pick<KeySession, "api" | "me">,
  query: Query,
  signal?: AbortSignal,
) {
  const params = { path: { projectId: me.project.id }, query };
  return unwrap(api.GET(route, { params, ...(signal && { signal }) }));
}
