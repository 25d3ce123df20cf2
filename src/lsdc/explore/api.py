"""The web API behind the page (``/openapi.json``, with ``/docs`` for people)."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field

import lsdc
from lsdc.errors import InputError
from lsdc.explore import export, features
from lsdc.explore.edits import OUTLIER, Cluster, Merge, Move, Name, Outlier, Redo, Undo
from lsdc.explore.samples import LONGEST_TEXT
from lsdc.explore.session import Session, Stale
from lsdc.explore.view import packed_labels, packed_places, state_of, tile

STATIC = Path(__file__).parent / "static"
PAGE = 60


class SplitRequest(BaseModel):
    """Split a cluster in two along the neighbour graph of its samples."""

    model_config = ConfigDict(strict=True, extra="forbid")
    do: Literal["split"]
    cluster: Cluster


class EditRequest(BaseModel):
    """An edit, and the version of the clusters it applies to."""

    model_config = ConfigDict(extra="forbid")
    version: int = Field(ge=0, lt=2**40, strict=True)
    edit: Name | Merge | SplitRequest | Move | Outlier | Undo | Redo = Field(discriminator="do")


class AsciiJSON(JSONResponse):
    """JSON in ASCII, as file names may contain what UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


SampleIndex = Annotated[int, Field(ge=0, lt=2**40)]


def build(session: Session) -> FastAPI:
    """The application around a run."""
    app = FastAPI(
        title="lsdc explore",
        version=lsdc.__version__,
        description="Inspect and change the clusters of a run. Every change names the version it applies to.",
        docs_url=None,
        redoc_url=None,
        default_response_class=AsciiJSON,
    )
    _page_routes(app)
    _cluster_routes(app, session)
    _list_routes(app, session)
    _sample_routes(app, session)
    _edit_routes(app, session)
    return app


def _page_routes(app: FastAPI) -> None:
    @app.exception_handler(InputError)
    def refused(request: Request, error: InputError) -> Response:
        return AsciiJSON({"message": str(error)}, 409 if isinstance(error, Stale) else 400)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        """Without what was sent, which FastAPI repeats: bytes, NaN and lone surrogates are no JSON."""
        detail = [{key: found[key] for key in ("loc", "msg", "type")} for found in error.errors()]
        return AsciiJSON({"detail": detail}, 422)

    @app.exception_handler(OSError)
    def failed(request: Request, error: OSError) -> Response:
        return AsciiJSON({"message": f"the change could not be saved: {error.strerror or error}"}, 507)

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return FileResponse(STATIC / "docs.html")

    app.mount("/static", StaticFiles(directory=STATIC), "static")


def _list_routes(app: FastAPI, session: Session) -> None:
    @app.get("/api/samples")
    def listed(
        cluster: Annotated[int | None, Query(ge=OUTLIER, lt=2**40, description="-1 are the outliers")] = None,
        low: Annotated[float, Query(ge=0, le=1, description="the lowest confidence")] = 0,
        high: Annotated[float, Query(ge=0, le=1, description="the highest confidence")] = 1,
        q: Annotated[str, Query(max_length=200, description="part of a name or text")] = "",
        order: Literal["typical", "doubtful"] = "typical",
        offset: Annotated[int, Query(ge=0, lt=2**40)] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = PAGE,
    ) -> AsciiJSON:
        """Samples, a page at a time."""
        rows = session.chosen(cluster, low, high, q, order == "doubtful")
        page = [tile(session, i) for i in rows[offset : offset + limit].tolist()]
        return AsciiJSON({"total": len(rows), "items": page})


def _sample_routes(app: FastAPI, session: Session) -> None:
    samples, n = session.samples, len(session.samples.ids)

    def known(i: int) -> int:
        if i >= n:
            raise HTTPException(404, f"there is no sample {i}; the run has {n}")
        return i

    @app.get("/api/samples/{i}")
    def sample(i: SampleIndex) -> AsciiJSON:
        """Everything known about a sample."""
        more = {"text": samples.text(known(i), LONGEST_TEXT), "values": samples.values(i)}
        return AsciiJSON(tile(session, i) | more)

    @app.get("/api/samples/{i}/neighbours")
    def neighbours(i: SampleIndex, k: Annotated[int, Query(ge=1, le=100)] = 18) -> AsciiJSON:
        """The nearest samples, nearest first."""
        known(i)
        if session.laid_out is None:
            return AsciiJSON({"items": [], "message": session.map.why or "still being computed"})
        near = features.neighbours(session.laid_out.features, i, k)
        return AsciiJSON({"items": [tile(session, j) for j in near.tolist()], "message": ""})

    @app.get("/api/samples/{i}/image", response_class=Response)
    def image(i: SampleIndex, size: Literal["small", "large"] = "small") -> Response:
        """A sample as a picture."""
        content = samples.picture(known(i), size)
        if content is None:
            raise HTTPException(404, "there is no picture of this sample")
        kind = "image/jpeg" if content[:2] == b"\xff\xd8" else "image/png"
        return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=600"})


def _cluster_routes(app: FastAPI, session: Session) -> None:
    @app.get("/api/state")
    def state() -> AsciiJSON:
        """The current clusters: sizes, names, typical samples; what can be undone; what is still being computed."""
        return AsciiJSON(state_of(session))

    @app.get("/api/clusters/{cluster}/near")
    def near(cluster: Cluster) -> AsciiJSON:
        """The other clusters, most similar first; empty until there are features."""
        return AsciiJSON({"clusters": session.near(cluster)})

    @app.get("/api/map", response_class=Response)
    def places() -> Response:
        """The positions of all samples on the map: x and y from 0 to 65,535, as little-endian 16-bit integers."""
        if session.laid_out is None:
            raise HTTPException(404, session.map.why or "the map is not ready yet")
        return Response(packed_places(session.laid_out.places), media_type="application/octet-stream")

    @app.get("/api/labels", response_class=Response)
    def labels() -> Response:
        """The version (32 bits), then cluster (32 bits) and confidence (8 bits) of all samples; little-endian."""
        return Response(packed_labels(session), media_type="application/octet-stream")


def _edit_routes(app: FastAPI, session: Session) -> None:
    refusals: dict[int | str, dict[str, Any]] = {
        400: {"description": "The edit makes no sense; the message says why."},
        409: {"description": "The edit applies to a version that is no longer the newest."},
    }

    @app.post("/api/edits", responses=refusals)
    def edit(request: EditRequest) -> AsciiJSON:
        """Apply an edit and return the new state. An edit of an older version is refused."""
        wanted = session.halved(request.edit.cluster) if isinstance(request.edit, SplitRequest) else request.edit
        session.edit(request.version, wanted)
        return AsciiJSON(state_of(session))

    @app.post("/api/export")
    def save() -> AsciiJSON:
        """Write the corrected labels into the run folder."""
        return AsciiJSON({"path": str(session.export())})

    @app.get("/api/labels-edited.csv", response_class=Response)
    def download() -> Response:
        """The corrected labels: id, cluster (-1 for outliers), name, confidence."""
        disposition = {"Content-Disposition": f'attachment; filename="{export.NAME}"'}
        return Response(session.csv(), media_type="text/csv; charset=utf-8", headers=disposition)
