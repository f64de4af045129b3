/**
 * The child's side of a `Child`: sends a greeting, responds to each request, and exits with its parent.
 */
export function answerParent<Question>(options: {
  greeting: object;
  answer: (question: Question) => Promise<object>;
}): void {
  process.on("message", (question) => {
    void options.answer(question as Question).then((answer) => process.send?.(answer));
  });
  process.on("disconnect", () => process.exit());
  process.on("SIGTERM", () => process.exit());
  process.send?.(options.greeting);
}
