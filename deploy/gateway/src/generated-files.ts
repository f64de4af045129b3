import { buildConfigurationPage } from "./configuration-page.ts";
import { messageSchemas } from "./message-schemas.ts";
import { buildDocument } from "./openapi/document.ts";

export type GeneratedFile = { path: string; content: string };

/** Everything in the repository that is made from its sources, by path from the root. */
export async function generateFiles(): Promise<GeneratedFile[]> {
  return [
    { path: "docs/openapi.json", content: json(buildDocument()) },
    ...messageSchemas().map(({ name, schema }) => ({
      path: `docs/schemas/${name}`,
      content: json(schema),
    })),
    { path: "docs/configuration.md", content: await buildConfigurationPage() },
  ];
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
