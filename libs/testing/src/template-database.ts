import { migrate, provisionService } from "@halyard/postgres";
import { migrationsDirOf } from "./project-root.ts";
import { roles, type Schema, schemas } from "./roles.ts";

/** Database URLs with the runtime role of each schema. */
export type RuntimeUrls = Readonly<Record<Schema, string>>;

/** Creates a database with the roles and migrated schemas of all services. */
export async function prepareTemplate(adminUrl: string, database: string): Promise<RuntimeUrls> {
  const urls: Partial<Record<Schema, string>> = {};
  for (const schema of schemas) {
    const { service, ...passwords } = roles[schema];
    const { ownerUrl, runtimeUrl } = await provisionService({
      adminUrl,
      database,
      service: schema,
      ...passwords,
    });
    await migrate({
      ownerUrl,
      schema,
      directory: migrationsDirOf(service),
    });
    urls[schema] = runtimeUrl;
  }
  return urls as RuntimeUrls;
}
