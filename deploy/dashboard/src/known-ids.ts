import { readFile } from "node:fs/promises";
import { ExampleIds, exampleIds } from "@halyard/contracts";

/**
 * Replaces the placeholders of a serialized document with the ids in a file. Until the file exists, the placeholders
 * stay: the launcher creates the demo through the gateway, and then writes the file.
 */
export async function withKnownIds(document: string, file: string): Promise<string> {
  const ids = await readIds(file);
  return Object.entries(ids).reduce(
    (text, [name, id]) => text.replaceAll(exampleIds[name as keyof ExampleIds], id),
    document,
  );
}

async function readIds(file: string): Promise<Partial<ExampleIds>> {
  try {
    return ExampleIds.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
}
