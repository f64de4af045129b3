/** Invalid or missing environment variables. Each problem is a sentence. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly hasSafeMessage = true;
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The configuration has ${problems.length === 1 ? "a problem" : "problems"}`);
    this.problems = problems;
  }
}
