import { closePages } from "../../src/system/openfeature.ts";

const hourMs = 60 * 60 * 1_000;
const presentHour = () => Math.floor(Date.now() / hourMs);

/**
 * A test in which nothing changes, so that answers are 304. With each full hour all pages are offered
 * another address of the stream, which is a new answer; a test that met that moment is done again.
 */
export function inOneHour(test: () => Promise<void>): () => Promise<void> {
  return async () => {
    const hour = presentHour();
    try {
      await test();
    } catch (error) {
      if (presentHour() === hour) throw error;
      await closePages();
      await test();
    }
  };
}
