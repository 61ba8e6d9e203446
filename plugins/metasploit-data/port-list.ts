import { type Interval, isWithinOne, mergedIntervals } from '../../lib/intervals.ts';

const LAST_PORT = 65_535;

/**
 * Whether a list of ports has a port: `22,80,8000-8100`, `-1023` and `1024-`, `21-25,!24` for all of them but one, `!22` for all ports but that
 * one; as the framework reads it, blanks around its parts left out and bounds in either order. A part that is no number is a range of none.
 */
export function portList(text: string): (port: number) => boolean {
    const parts = text.split(',').flatMap((part) => part.trim() || []);
    const excluding = parts.filter((part) => part.startsWith('!'));
    const excluded = excluding.flatMap((part) => portRange(part.replaceAll('!', '')));
    const isAllBut = excluded.length > 0 && excluding.length === parts.length;
    const listed = isAllBut ? [[1, LAST_PORT] as const] : parts.filter((part) => !part.startsWith('!')).flatMap(portRange);
    const [wanted, unwanted] = [mergedIntervals(listed), mergedIntervals(excluded)];
    return (port) => isWithinOne(wanted, port) && !isWithinOne(unwanted, port);
}

/** None for what is no number. */
function portRange(part: string): readonly Interval<number>[] {
    if (part === '') {
        return [];
    }

    const [from = '', to = from] = part.split('-');
    const [first, last] = [Number(from), to.trim() === '' ? LAST_PORT : Number(to)];
    if (Number.isNaN(first + last)) {
        return [];
    }
    return [first <= last ? [first, last] : [last, first]];
}
