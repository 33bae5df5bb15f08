import type { Canvases, Chart } from './chart';
import { handles } from './frame';
import { SHORTEST } from './scale';

/** Pixels of the page: a shorter drag is a click; a pointer this near grabs an edge of the window. */
const STILL = 4;
const EDGE = 7;

/** Handles the pointer on the rows and the overview; returns a function that stops this. */
export function listen(chart: Chart, canvases: Canvases): () => void {
  const stops = [
    wheel(chart, canvases.rows),
    drag(canvases.rows, startOnRows(chart)),
    drag(canvases.overview, startOnOverview(chart, canvases.overview))
  ];
  return () => stops.forEach(stop => stop());
}

/** The effects of a pressed pointer. */
interface Drag {
  readonly move: (x: number) => void;
  readonly end: (x: number, y: number, still: boolean) => void;
}

function drag(canvas: HTMLCanvasElement, start: (x: number) => Drag): () => void {
  let current: Drag | null = null;
  let from = { x: 0, y: 0 };
  let still = true;
  const point = (event: PointerEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const down = (event: PointerEvent): void => {
    if (event.button === 0) {
      canvas.setPointerCapture(event.pointerId);
      from = point(event);
      still = true;
      current = start(from.x);
    }
  };
  const move = (event: PointerEvent): void => {
    const { x, y } = point(event);
    still = still && Math.hypot(x - from.x, y - from.y) < STILL;
    if (current && !still) {
      current.move(x);
    }
  };
  const up = (event: PointerEvent): void => {
    const { x, y } = point(event);
    current?.end(x, y, still);
    current = null;
  };
  const cancel = (): void => {
    current = null;
  };
  const stop = new AbortController();
  const { signal } = stop;
  canvas.addEventListener('pointerdown', down, { signal });
  canvas.addEventListener('pointermove', move, { signal });
  canvas.addEventListener('pointerup', up, { signal });
  canvas.addEventListener('pointercancel', cancel, { signal });
  return () => stop.abort();
}

/** A drag shifts the time, a click chooses the item under the pointer. */
function startOnRows(chart: Chart): (x: number) => Drag {
  return x => {
    let last = x;
    return {
      move: to => {
        chart.pan((last - to) / chart.width);
        last = to;
      },
      end: (end, y, still) => {
        if (still) {
          chart.choose(chart.hit(end, y));
        }
      }
    };
  };
}

/** A drag shifts the window or one of its edges; a click beside it moves it to the pointer. */
function startOnOverview(chart: Chart, canvas: HTMLCanvasElement): (x: number) => Drag {
  return x => {
    const { window, domain } = chart;
    const width = canvas.clientWidth || 1;
    const { left, right } = handles(window, domain, width, 1);
    const scale = (domain.end - domain.begin) / width;
    const end = window.start + window.length;
    const onLeft = Math.abs(x - left) <= EDGE && x < (left + right) / 2;
    const onRight = Math.abs(x - right) <= EDGE && !onLeft;
    const beside = !onLeft && !onRight && (x < left || x > right);
    const grip = beside ? window.length / 2 : domain.begin + x * scale - window.start;
    const move = (to: number): void => {
      const time = domain.begin + to * scale;
      if (onLeft) {
        chart.show({ start: Math.min(time, end - SHORTEST), length: end - time });
      } else if (onRight) {
        chart.show({ start: window.start, length: Math.max(time - window.start, SHORTEST) });
      } else {
        chart.show({ start: time - grip, length: window.length });
      }
    };
    if (beside) {
      move(x);
    }
    return {
      move,
      end: to => {
        // At the right border the window follows the latest time again.
        if (!onLeft && to >= width - EDGE) {
          chart.follow();
        }
      }
    };
  };
}

/** With ctrl, which a pinch sets too, the wheel zooms; sideways it shifts; else the page scrolls. */
function wheel(chart: Chart, canvas: HTMLCanvasElement): () => void {
  const turn = (event: WheelEvent): void => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      chart.zoom(Math.exp(Math.min(Math.max(event.deltaY, -100), 100) / 250), x);
    } else if (event.shiftKey || Math.abs(sideways) > Math.abs(event.deltaY)) {
      chart.pan(sideways / 600);
    } else {
      return;
    }
    event.preventDefault();
  };
  canvas.addEventListener('wheel', turn, { passive: false });
  return () => canvas.removeEventListener('wheel', turn);
}
