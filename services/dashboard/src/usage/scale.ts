/** Number of steps between the labels of an axis, unless round numbers need fewer. */
const maxSteps = 4;

/** Returns round numbers from 0 to at least `highest`, in equal steps, for the labels of an axis. */
export function scaleTo(highest: number): readonly number[] {
  const least = Math.max(1, highest / maxSteps);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
  return Array.from(
    { length: Math.max(1, Math.ceil(highest / step)) + 1 },
    (_, index) => index * step,
  );
}
