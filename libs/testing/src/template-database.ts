import { migrate, provisionService } from "@halyard/postgres";
import { migrationsDirOf } from "./project-root.ts";
import { roles, type Schema, schemas } from "./roles.ts";

/** By schema: the address of the database for the runtime role of the service that owns it. */
export type RuntimeUrls = Readonly<Record<Schema, string>>;

/** Makes a database with every service's roles and schema, as the migrations leave it. */
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
