/** Runs all release functions in reverse order, even if some fail, and then throws the first error. */
export async function releaseAll(releases: readonly (() => Promise<void>)[]): Promise<void> {
  let first: { error: unknown } | undefined;
  for (const release of releases.toReversed()) {
    try {
      await release();
    } catch (error) {
      first ??= { error };
    }
  }
  if (first !== undefined) throw first.error;
}
