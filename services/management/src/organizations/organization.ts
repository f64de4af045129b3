/** A customer: its plan, and with it what it may use. */
export type Organization = {
  id: string;
  name: string;
  plan: string;
  /** Raised by every change to the organization or to the number of its projects. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};
