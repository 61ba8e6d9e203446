/** The clock of the embedded database: that of the machine when it was opened, and monotonic from then on. Times in milliseconds. */
export interface DatabaseClock {
    now(): number;
    /**
     * Goes forward to the clock of the machine where that has come too far ahead. Never back: what waits for its time, and who holds a claim, would be
     * put off by that.
     *
     * @returns How far it went; 0 where it stayed.
     */
    follow(): number;
}

/**
 * A machine that was suspended, or whose clock was corrected after the start, is ahead for good: from five minutes on receivers would refuse every
 * signature. What is less is no more than clocks of two machines differ by.
 */
const MAX_BEHIND = 30_000;

/** @param wall The machine's clock. @param monotonic Milliseconds since any moment. */
export function databaseClock(wall: () => number, monotonic: () => number): DatabaseClock {
    let anchor = wall() - monotonic();
    const now = (): number => Math.floor(anchor + monotonic());
    return {
        now,

        follow() {
            const behind = wall() - now();
            if (behind <= MAX_BEHIND) {
                return 0;
            }
            anchor += behind;
            return behind;
        },
    };
}
