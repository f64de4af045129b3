import { join } from "node:path";
import type { ExampleIds } from "@halyard/contracts";
import type { DemoCredentials } from "./credentials.ts";
import { writePrivateFile } from "./private-file.ts";

/** The demo's ids without its keys. The gateway shows them as the examples of its documentation. */
export function exampleIdsFileIn(home: string): string {
  return join(home, "example-ids.json");
}

export function writeExampleIds(home: string, demo: DemoCredentials): void {
  const ids: ExampleIds = {
    organizationId: demo.organization_id,
    userId: demo.user_id,
    projectId: demo.project_id,
    environmentId: demo.environment_id,
  };
  writePrivateFile(exampleIdsFileIn(home), `${JSON.stringify(ids, null, 2)}\n`);
}
