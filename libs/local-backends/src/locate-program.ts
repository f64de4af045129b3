import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Returns the path of a program in the directories of a search path such as PATH. */
export function locateProgram(name: string, searchPath: string): string | undefined {
  const places = searchPath.split(delimiter).map((directory) => join(directory, name));
  return places.find((place) => existsSync(place));
}
