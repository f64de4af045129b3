import { open, rename, rm } from "node:fs/promises";
import { threadId } from "node:worker_threads";

/**
 * Writes a file that only its owner can read. A crash or a full disk leaves the previous file, because the new one is
 * complete on disk before it replaces it.
 */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  // Processes and threads can share a file. In a container, the successor of a crashed process reuses its names.
  const temporary = `${path}.${process.pid}-${threadId}.tmp`;
  try {
    // A leftover file would keep its mode.
    await rm(temporary, { force: true });
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}
