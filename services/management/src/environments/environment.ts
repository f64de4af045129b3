/** A place of a project where each of its flags has a state of its own. */
export type Environment = {
  id: string;
  projectId: string;
  name: string;
  /** Raised by every change. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};
