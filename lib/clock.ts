/** The time now. Passed in, so that schedules, expiry and jitter are tested without sleeping. */
export type Clock = () => Date;

/** The clock of the machine. */
export const systemClock: Clock = () => new Date();
