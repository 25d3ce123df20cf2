"""What model files and the config.json of a run may hold; nothing in them is trusted."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, InstanceOf, PositiveInt

from lsdc.training.plan import Frozen

Count = Annotated[int, Field(ge=1, le=2**40)]
Scale = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Text = InstanceOf[str]  # pydantic's own str refuses names of files that are not UTF-8
FORMAT = 2  # incremented by changes that older code cannot read; in format 1 the settings of LSD-C are nested
FORMATS = (1, FORMAT)


class Strict(Frozen):
    """The content of a file, with strict types: nothing is converted."""

    model_config = ConfigDict(strict=True)


class Header(Strict):
    """The JSON of a model file."""

    format: Literal[1, 2]
    method: str
    params: dict[str, Any]
    settings: dict[str, Any]
    shape: list[Count]
    n_features_in: Count
    feature_names: list[Text]
    words: list[Text] | None
    history: list[Any]
    n_clusters: Count | None = None  # found by the method, if it was not given
    names: list[Text] | None = None
    terms: list[list[Text]] | None = None


class Origin(Strict):
    """Where a run's data came from, and what it was."""

    source: Text | None = None
    image_size: int = Field(32, ge=8, le=4096)
    column: Text | None = None
    text_column: Text | None = None
    columns: list[Text] = Field(default_factory=list)
    id_column: Text | None = None
    array: Text | None = None
    prepared: list[Scale | Annotated[list[Text], Field(min_length=1, max_length=1000)]] = Field(default_factory=list)
    image_range: list[float] | None = Field(None, min_length=2, max_length=2)
    encoder: Text | None = None
    text_encoder: Text | None = None
    encoder_settings: dict[str, Any] | None = None
    encoder_digest: str | None = None
    n: Count
    shape: list[Count]
    digest: str
    pretext_n: Count | None = None
    pretext_digest: str | None = None


class Config(Strict):
    """The config.json of a run."""

    method: str
    behaviour: PositiveInt
    seed: int
    settings: dict[str, Any]
    params: dict[str, Any]
    data: Origin
    fingerprint: str
    refines: str = ""  # the fingerprint of the run it was refined from
    outliers: float = Field(0.0, ge=0, le=0.9)
