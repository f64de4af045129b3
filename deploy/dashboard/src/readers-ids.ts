import { readFile } from "node:fs/promises";
import { exampleIds } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import { z } from "zod";

/** Timeout of a request for ids. */
const timeoutMs = 5_000;

/** The address and the key in `demo.json` for reading the ids. */
const Demo = z.object({ base_url: z.url(), server_key: z.string() });
type Demo = z.infer<typeof Demo>;

type Ids = { [name in keyof typeof exampleIds]?: string | undefined };

type Document = { paths: Record<string, Record<string, unknown>> };

/**
 * Replaces the placeholders of the document by the ids of the demo and of its first flag, webhook and delivery. Without a
 * demo or such a resource, the placeholders stay. They also stay where the request of an example would delete a flag or a
 * webhook, or end a key, and while the API or the demo's key does not work: the documentation must not depend on them.
 */
export async function withReadersIds(
  document: Document,
  { demoFile, logger }: { demoFile: string; logger: Logger },
): Promise<Document> {
  const demo = await readDemo(demoFile);
  if (demo === undefined) return document;
  const ids = await readIds(demo).catch((error: unknown): Ids => {
    logger.warn({ err: error }, "placeholders in /openapi.json: could not read the demo's ids");
    return {};
  });
  const paths = Object.entries(document.paths).map(([path, operations]) => [
    path,
    Object.fromEntries(
      Object.entries(operations).map(([method, operation]) => [
        method,
        replaceIds(operation, method, ids),
      ]),
    ),
  ]);
  return { ...document, paths: Object.fromEntries(paths) };
}

function replaceIds(operation: unknown, method: string, ids: Ids): unknown {
  let text = JSON.stringify(operation);
  for (const [name, id] of Object.entries(ids) as [keyof Ids, string | undefined][])
    if (id !== undefined && !endsIt(method, name)) text = text.replaceAll(exampleIds[name], id);
  return JSON.parse(text);
}

/** Returns whether requests of this method can end the resource with this id. Rotating ends a key by `POST`. */
function endsIt(method: string, name: keyof Ids): boolean {
  if (name === "keyId") return method !== "get";
  return method === "delete" && ["flagId", "webhookId", "deliveryId"].includes(name);
}

/** Returns undefined until the launcher has written the file, when everything is ready. */
async function readDemo(file: string): Promise<Demo | undefined> {
  try {
    return Demo.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const Identity = z.object({
  key: z.object({ id: z.string(), environment_id: z.string() }),
  user: z.object({ id: z.string() }),
  organization: z.object({ id: z.string() }),
  project: z.object({ id: z.string() }),
});
const Listed = z.object({ id: z.string() }).array();
const Flags = z.object({ flags: Listed });
const Webhooks = z.object({ webhooks: Listed });
const Deliveries = z.object({ deliveries: Listed });

async function readIds(demo: Demo): Promise<Ids> {
  const read = async <T>(path: string, schema: z.ZodType<T>): Promise<T> => {
    const headers = { authorization: `Bearer ${demo.server_key}` };
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(new URL(path, demo.base_url), { headers, signal });
    if (!response.ok) throw new Error(`GET ${path}: ${response.status}`);
    return schema.parse(await response.json());
  };
  const { key, user, organization, project } = await read("/api/v1/me", Identity);
  const webhooksPath = `/api/v1/projects/${project.id}/webhooks`;
  const [{ flags }, { webhooks }] = await Promise.all([
    read("/api/v1/flags?limit=1", Flags),
    read(webhooksPath, Webhooks),
  ]);
  const webhookId = webhooks[0]?.id;
  const { deliveries } =
    webhookId === undefined
      ? { deliveries: [] }
      : await read(`${webhooksPath}/${webhookId}/deliveries?limit=1`, Deliveries);
  return {
    organizationId: organization.id,
    userId: user.id,
    projectId: project.id,
    environmentId: key.environment_id,
    keyId: key.id,
    flagId: flags[0]?.id,
    webhookId,
    deliveryId: deliveries[0]?.id,
  };
}
